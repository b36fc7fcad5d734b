// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/base/partition.h"
#include "common/base/status.h"
#include "common/base/time.h"
#include "kernels/op.h"
#include "shard_worker/collectives/collective.h"
#include "shard_worker/core/step_inputs.h"
#include "shard_worker/device/engine.h"
#include "shard_worker/model/joint_row.h"
#include "shard_worker/model/logit_controls.h"
#include "shard_worker/model/row_part.h"
#include "shard_worker/model/token_mask.h"

namespace brigade::worker {

/// Turns rows of logits into tokens or prompt tokens' scores. Every rank of the last stage has one
/// and looks through its own share of the vocabulary; rank 0 puts together what they find, which is
/// a few candidates a rank, and decides:
///
///     every rank   raw log-sum and best | penalties, biases | mask | candidates, weights
///     rank 0       gathers those | draws; rarely, when the candidates do not reach far enough,
///                  gathers the whole row
///     every rank   learns the token, where its controls depend on the output
///
/// A token is a function of the logits, the sequence's parameters and its tokens: randomness is
/// random_uniform(seed, position), sums are in double and in a fixed order. Log-probabilities are
/// of the distribution as the model gave it. Logits that are not finite, or a mask that leaves
/// nothing, are a fault of that row alone (ScoredToken::fault): its token is then 0.
class Sampler final {
 public:
  /// `vocab`: the shares of all ranks. Rows at a time: at most kMaxRows.
  Sampler(Partition vocab, std::int64_t tp_rank);

  static constexpr std::size_t kMaxRows = 32;

  /// Forgets the slots that the step admits anew, and keeps what these depend on.
  void admit(const StepInputs& inputs);

  /// `logits`: [rows.size(), own share], overwritten. `sums`: of each row, before; counts only
  /// where log-probabilities are asked for. Appends to `scored` on rank 0. All ranks must call it
  /// alike.
  Status sample(std::span<const ScoreRow> rows, const kernels::Matrix& logits,
                std::span<const kernels::LogitSum> sums, Collective& group, TimePoint deadline,
                std::vector<ScoredToken>& scored);
  /// The same for any number of rows that need no logits (needs_logits), from what was summed up of
  /// them.
  Status score(std::span<const ScoreRow> rows, std::span<const kernels::LogitSum> sums,
               Collective& group, TimePoint deadline, std::vector<ScoredToken>& scored);

  /// What it takes beside a few candidates.
  [[nodiscard]] static std::uint64_t scratch_bytes(std::int64_t vocab_size);

 private:
  [[nodiscard]] Range share() const { return vocab_[tp_rank_]; }
  [[nodiscard]] std::int64_t vocab_size() const { return vocab_.back().end; }
  [[nodiscard]] LogitControls* controls_of(const ScoreRow& row);
  void look(const ScoreRow& row, std::size_t index, std::span<float> logits,
            const kernels::LogitSum& sum);
  Status gather_parts(std::span<const ScoreRow> rows, Collective& group, TimePoint deadline);
  /// Rank 0: decides what it can; a bit for each row that needs all of its logits.
  std::uint32_t decide(std::span<const ScoreRow> rows);
  Status decide_from_all(const ScoreRow& row, std::size_t index, std::span<float> logits,
                         Collective& group, TimePoint deadline);
  Status push_drawn(std::span<const ScoreRow> rows, std::span<const ScoredToken> scored,
                    Collective& group, TimePoint deadline);

  Partition vocab_;
  std::size_t tp_rank_;
  std::unordered_map<std::uint32_t, LogitControls> controls_;  ///< by slot
  TokenMask mask_;
  std::vector<RowPart> own_;                 ///< [kMaxRows] of this rank
  std::vector<std::vector<RawLogit>> raws_;  ///< [kMaxRows] what controls changed
  std::vector<JointRow> joint_;              ///< [kMaxRows] on rank 0
  std::vector<RowPart> parts_;               ///< [ranks] of one row
  std::vector<float> packed_;                ///< own rows
  std::vector<float> gathered_;              ///< rank 0: of all ranks, one after another
  std::vector<float> whole_;                 ///< rank 0 of several: [vocab_size]
};

}  // namespace brigade::worker
