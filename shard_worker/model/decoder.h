// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/spec.h"
#include "kernels/op.h"
#include "shard_worker/collectives/collective.h"
#include "shard_worker/core/step_inputs.h"
#include "shard_worker/model/expert_ffn.h"
#include "shard_worker/model/rope_table.h"
#include "shard_worker/model/scratch.h"
#include "shard_worker/weights/shard_weights.h"

namespace brigade::worker {

/// The decoder of one rank, written once against the op set: what differs between devices is Ops,
/// between families ModelSpec. Activations are whole on every rank of a stage; each layer sums
/// twice over the ranks.
///
/// Scratch is taken once for max_step_tokens; a step allocates nothing.
class Decoder final {
 public:
  /// spec, weights and ops must outlive the decoder.
  Decoder(const model::ModelSpec& spec, const Shard& shard, const ShardWeights& weights,
          kernels::Ops& ops, std::int64_t max_step_tokens);

  /// Runs the stage's layers. hidden: [num_tokens, hidden_size] in place; the first stage writes
  /// the embedding first.
  Status forward(const StepInputs& inputs, kernels::KvCache& cache, Collective& group,
                 TimePoint deadline, std::span<float> hidden);

  /// Gets the logits of rows [first, first + logits.rows) of those asked for, over this rank's
  /// vocabulary: [rows, shard.vocab.size()], which it may overwrite.
  using LogitsSink = std::function<Status(std::size_t first, const kernels::Matrix& logits)>;
  static constexpr std::int64_t kLogitRows = 16;

  /// Last stage: the logits of `rows`, at most kLogitRows at a time (they share each load of the
  /// head), on every rank. hidden: [num_tokens, hidden_size].
  Status logits(std::span<const ScoreRow> rows, std::span<const float> hidden,
                const LogitsSink& sink);

  /// Gets the sums and the targets' logits of rows [first, first + sums.size()).
  using SumsSink =
      std::function<Status(std::size_t first, std::span<const kernels::LogitSum> sums)>;
  static constexpr std::int64_t kSumRows = 128;

  /// As logits where no more is wanted than the targets' log-probabilities: no logits are kept.
  Status score(std::span<const ScoreRow> rows, std::span<const float> hidden, const SumsSink& sink);

  /// What a decoder of these sizes takes beside weights and KV.
  [[nodiscard]] static std::uint64_t scratch_bytes(const model::ModelSpec& spec, const Shard& shard,
                                                   std::int64_t max_step_tokens);

 private:
  /// The FFN's scratch is the largest. A step's rows pass through it in parts of this size, enough
  /// for each read of a weight to be shared.
  static constexpr std::int64_t kFfnRows = 128;

  /// Leaves this rank's part of the attention output of the stage's layer i in partial_.
  void attention(std::size_t i, const StepInputs& inputs, kernels::KvCache& cache,
                 const kernels::Matrix& x);
  /// Leaves this rank's part of the FFN output in partial_.
  void ffn(const LayerWeights& weights, const kernels::Matrix& x);
  /// Of some rows; normed, partial: [rows, hidden_size], at most kFfnRows.
  void ffn_rows(const LayerWeights& weights, const kernels::Matrix& normed,
                const kernels::Matrix& partial);
  /// x += the sum of partial_ over the ranks, normed where there is a norm.
  Status add_partial(Collective& group, TimePoint deadline, std::span<const float> post_norm,
                     const kernels::Matrix& x);
  /// The rows' hidden states, through the last norm, in rows_.
  kernels::Matrix last_normed(std::span<const ScoreRow> rows, std::span<const float> hidden);

  const model::ModelSpec& spec_;
  const Shard shard_;
  const ShardWeights& weights_;
  kernels::Ops& ops_;
  const std::int64_t max_step_tokens_;
  const std::int64_t q_size_;                ///< of this rank: heads * head_dim
  const std::int64_t kv_size_;               ///< of this rank: kv_heads * head_dim
  std::vector<RopeTable> ropes_;             ///< [spec.ropes.size()]
  std::vector<kernels::RopeAngles> angles_;  ///< of this step, by rope
  std::optional<ExpertFfn> experts_;         ///< where a layer has some
  AlignedFloats normed_;                     ///< [max_step_tokens, hidden_size]
  AlignedFloats qkv_;                        ///< [max_step_tokens, q + kv + kv]
  AlignedFloats mixed_;                      ///< [max_step_tokens, q]: what attention gives
  AlignedFloats partial_;  ///< [max_step_tokens, hidden_size]: this rank's part of a sum
  AlignedFloats gate_up_;  ///< [kFfnRows, 2 * ffn]
  AlignedFloats act_;      ///< [kFfnRows, ffn]
  AlignedFloats rows_;     ///< [kSumRows, hidden_size]
  AlignedFloats part_;     ///< [kLogitRows, vocab of this rank]
};

}  // namespace brigade::worker
