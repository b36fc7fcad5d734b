// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "shard_worker/model/row_part.h"

namespace brigade::worker {

/// Candidates of a row over the whole vocabulary, sorted as far as they are looked at.
class CandidateList final {
 public:
  void clear();
  void add(const Candidate& candidate) { items_.push_back(candidate); }
  /// The first `num_exact` in order are the best of the vocabulary; with `complete`, there are no
  /// others.
  void finish(std::size_t num_exact, bool complete);

  [[nodiscard]] std::size_t size() const { return num_exact_; }
  [[nodiscard]] bool complete() const { return complete_; }
  /// The i-th best.
  [[nodiscard]] const Candidate& at(std::size_t i);

 private:
  std::vector<Candidate> items_;
  std::size_t num_sorted_ = 0;
  std::size_t num_exact_ = 0;
  bool complete_ = false;
};

/// Sums over all that may be drawn, of the weights w = exp(x), x = (logit - peak) / temperature.
struct DrawWeights {
  double peak = 0;    ///< the largest logit
  double total = 0;   ///< of w; counts only where top_k and min_p are off
  double moment = 0;  ///< of w * x; the same
};

/// Draws one token. In this order, each over what the one before left:
///
///   temperature   w = exp((logit - peak) / temperature)
///   min_p         keeps w >= min_p times the largest
///   top_k         keeps the best k
///   top_p         keeps the fewest of the best with that share of the weight
///   typical_p     keeps the fewest of those nearest to the entropy, -log p near H, with that share
///                 of the weight (Meister et al. 2023)
///
/// and then the inverse of the cumulative distribution at `uniform` in [0, 1), by falling
/// probability (after typical_p by rising distance), equal ones by rising id. Nothing when the
/// list does not reach far enough to tell; never with a complete one, which gives the same token as
/// a shorter list that reached. The list must not be empty.
[[nodiscard]] std::optional<Candidate> draw(const wire::SequenceAdmit& params, double uniform,
                                            const DrawWeights& weights, CandidateList& list);

}  // namespace brigade::worker
