// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/model/spec.h"
#include "kernels/op.h"
#include "shard_worker/model/scratch.h"
#include "shard_worker/weights/shard_weights.h"

namespace brigade::worker {

/// A mixture of experts: each expert meets the rows that chose it, together. A row's experts are
/// added up in rising order whoever else is in the step, so its bits do not depend on that. All
/// ranks choose alike (the router and what it sees are whole on each) and hold a part of every
/// expert's columns.
class ExpertFfn final {
 public:
  /// spec and ops must outlive it.
  ExpertFfn(const model::ModelSpec& spec, const Shard& shard, kernels::Ops& ops,
            std::int64_t max_step_tokens);

  /// x: [num_tokens, hidden_size]. Leaves this rank's part of the sum in out, of the same shape.
  void run(const LayerWeights& weights, const kernels::ConstMatrix& x, const kernels::Matrix& out);

  /// Floats of scratch a token.
  [[nodiscard]] static std::int64_t scratch_row(const model::ModelSpec& spec, const Shard& shard);

 private:
  /// Sorts the rows by the experts they chose: those of expert e are rows_[first_[e], first_[e +
  /// 1]).
  void sort_rows(std::int64_t num_tokens);
  void run_expert(const FfnWeights& weights, std::int64_t expert, const kernels::ConstMatrix& x,
                  const kernels::Matrix& out);

  const model::ModelSpec& spec_;
  kernels::Ops& ops_;
  const std::int64_t columns_;        ///< of each expert on this rank
  std::vector<std::int32_t> chosen_;  ///< [max_step_tokens, num_used]
  std::vector<float> shares_;         ///< [max_step_tokens, num_used]
  std::vector<std::size_t> first_;    ///< [num_experts + 1]
  std::vector<std::int32_t> rows_;    ///< [max_step_tokens * num_used], by expert
  std::vector<float> row_shares_;     ///< of rows_
  AlignedFloats logits_;              ///< [max_step_tokens, num_experts]
  AlignedFloats in_;                  ///< [max_step_tokens, hidden_size]: an expert's rows
  AlignedFloats gate_up_;             ///< [max_step_tokens, 2 * columns]
  AlignedFloats act_;                 ///< [max_step_tokens, columns]
  AlignedFloats out_;                 ///< [max_step_tokens, hidden_size]: what they come to
};

}  // namespace brigade::worker
