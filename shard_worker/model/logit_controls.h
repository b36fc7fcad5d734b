// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/base/partition.h"
#include "common/wire/messages.h"
#include "shard_worker/model/token_mask.h"

namespace brigade::worker {

/// A token's logit as the model gave it, before it was changed.
struct RawLogit {
  std::int32_t token = 0;
  float logit = 0;
};

/// Penalties, biases and forbidden tokens of one sequence, over one rank's share of the vocabulary.
/// The state is a function of the sequence's tokens alone: those that came with its admission, then
/// those pushed. So a replay elsewhere goes on the same, to the bit.
class LogitControls final {
 public:
  LogitControls(std::shared_ptr<const wire::SamplingControls> settings, Range vocab);

  /// A token was drawn for the sequence (any of the whole vocabulary).
  void push(std::int32_t token);

  /// Changes logits [vocab.size()], in this order (Keskar et al. 2019, and OpenAI's):
  ///   in prompt or output   logit > 0 ? logit / repetition_penalty : logit * repetition_penalty
  ///   in the output         logit -= frequency_penalty * count + presence_penalty
  ///   biased                logit += bias
  /// and appends to `raw` what they were. A token that comes twice there was first what comes
  /// first.
  void adjust(std::span<float> logits, std::vector<RawLogit>& raw) const;

  /// Allows and forbids tokens as the settings and the output so far say.
  void mask(TokenMask& mask) const;

  [[nodiscard]] bool needs_output() const { return settings_->needs_output(); }

 private:
  struct Seen {
    std::int32_t token = 0;
    std::uint32_t num_output = 0;  ///< times in the output
  };
  Seen& seen(std::int32_t token);

  std::shared_ptr<const wire::SamplingControls> settings_;
  Range vocab_;
  std::vector<Seen> seen_;  ///< of this share, in order of appearance
  std::unordered_map<std::int32_t, std::size_t> seen_at_;
  std::vector<std::int32_t> tail_;  ///< the output's end, as long as a bad word's beginning
  std::size_t max_tail_ = 0;
};

}  // namespace brigade::worker
