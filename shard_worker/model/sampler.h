// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "shard_worker/core/step_inputs.h"
#include "shard_worker/device/engine.h"

namespace brigade::worker {

/// Turns one row of logits into a token or a prompt token's score. Its choice is a function of the
/// logits and the row's parameters alone: randomness is random_uniform(seed, position), sums are in
/// double and in a fixed order.
///
///   temperature 0   the lowest id among the largest logits
///   else            temperature, then top_k, then top_p (vLLM's order), then the inverse of the
///   cumulative distribution
///                   over tokens by falling probability, equal ones by rising id
///
/// Log-probabilities are of the distribution as the model gave it, before temperature and bans.
class Sampler final {
 public:
  explicit Sampler(std::int64_t vocab_size);

  /// `logits`: [vocab_size], overwritten where tokens are banned. kInternal when one of them is not
  /// finite.
  [[nodiscard]] Result<ScoredToken> score(const ScoreRow& row, std::span<float> logits);

 private:
  struct Candidate {
    float logit = 0;
    std::int32_t token = 0;
  };
  static bool better(const Candidate& a, const Candidate& b);

  [[nodiscard]] std::int32_t draw(const ScoreRow& row, std::span<const float> logits);
  /// Makes candidates_[0, count) the best `count` in order (as far as there are so many).
  void sort_up_to(std::size_t count);
  void add_top(std::span<const float> logits, std::int32_t count, double log_sum,
               ScoredToken& scored);

  std::vector<Candidate> candidates_;  ///< [vocab_size]
  std::size_t num_sorted_ = 0;
};

}  // namespace brigade::worker
