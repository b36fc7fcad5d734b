// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/wire/messages.h"

namespace brigade::worker {

/// A row whose logits are wanted, and what for.
struct ScoreRow {
  std::int32_t row = 0;   ///< in the step's token rows
  std::uint32_t seq = 0;  ///< slot
  /// Of the token that is scored or sampled (the row's own position + 1).
  std::uint32_t position = 0;
  bool sample = false;       ///< draw a token; else score `target`
  std::int32_t target = -1;  ///< prompt token to score
  /// Owned by the sequence table, valid during the step.
  const wire::SequenceAdmit* params = nullptr;
};

/// One step as a device takes it: flat arrays, made from the command stream by SequenceTable. Every
/// rank of a replica makes the same one from the same commands.
struct StepInputs {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint32_t lane = 0;
  std::uint64_t plan_hash = 0;
  std::vector<std::int32_t> tokens;        ///< [num_tokens]
  std::vector<std::int32_t> positions;     ///< [num_tokens]
  std::vector<std::int32_t> slot_mapping;  ///< [num_tokens] block * 16 + offset
  std::vector<std::int32_t> cu_seqlens_q;  ///< [num_seqs + 1]
  std::vector<std::int32_t> context_lens;  ///< [num_seqs] this step's tokens included
  std::vector<std::int32_t> cu_blocks;     ///< [num_seqs + 1]
  std::vector<std::int32_t> block_tables;
  std::vector<ScoreRow> score_rows;  ///< ascending by row; sampling and scoring
  /// Slots that begin anew with this step. Owned by the sequence table, valid during the step.
  std::vector<const wire::SequenceAdmit*> admitted;
  /// Rows whose token is the last sample of a slot (TokenSource): filled in by the first stage
  /// before it embeds.
  struct PendingToken {
    std::int32_t row = 0;
    std::uint32_t seq = 0;
    /// The one that drew it: slots are reused, so the slot alone would not tell.
    std::uint64_t step = 0;
  };
  std::vector<PendingToken> pending_tokens;
  /// Whole KV blocks to copy before anything is written.
  struct BlockCopy {
    std::int32_t from = 0;
    std::int32_t to = 0;
  };
  std::vector<BlockCopy> block_copies;

  [[nodiscard]] std::int64_t num_tokens() const { return static_cast<std::int64_t>(tokens.size()); }
};

}  // namespace brigade::worker
