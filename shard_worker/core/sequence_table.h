// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/wire/messages.h"
#include "shard_worker/core/step_inputs.h"

namespace brigade::worker {

/// What a command of this epoch must keep to.
struct SequenceLimits {
  std::uint64_t epoch = 0;
  std::uint32_t max_seqs = 0;         ///< slots
  std::uint32_t max_step_tokens = 0;  ///< rows of a step
  std::uint64_t num_kv_blocks = 0;    ///< at most kMaxKvBlocks
  std::int64_t vocab_size = 0;
};

/// slot_mapping is int32: block * 16 + offset must fit.
inline constexpr std::uint64_t kMaxKvBlocks = (std::uint64_t{1} << 27) - 1;

/// The command stream of one epoch -> StepInputs. Keeps each open slot's sampling parameters, block
/// table and next position, and nothing else: everything that decides is the router's. Pure, so
/// that every rank of a replica makes the same inputs from the same commands.
///
/// A command that breaks the rules is a Status that names the field and the values. The table then
/// refuses all further commands: the ranks would no longer agree, so the epoch must end.
class SequenceTable final {
 public:
  explicit SequenceTable(const SequenceLimits& limits);

  /// Checks and applies `command`, and fills `inputs` (its vectors are reused).
  /// score_rows[i].params and admitted point into this table, valid until the next apply().
  Status apply(const wire::StepCommand& command, StepInputs& inputs);

  [[nodiscard]] std::uint32_t num_open() const { return num_open_; }

 private:
  struct Slot {
    bool open = false;
    bool started = false;             ///< it had a step: its position is fixed
    bool sampled = false;             ///< its last step sampled: a token for next_position exists
    std::uint32_t next_position = 0;  ///< where the next chunk must begin, once started
    std::uint64_t last_step = 0;      ///< the last step it was in, once started
    wire::SequenceAdmit params;
    std::vector<std::int32_t> block_table;
  };
  /// Where one sequence's entries lie in a command.
  struct Chunk {
    std::size_t index = 0;  ///< of the sequence in the command
    std::uint32_t seq = 0;
    std::uint32_t position = 0;
    std::uint32_t num_tokens = 0;
    std::uint8_t flags = 0;
    std::int32_t next_token = -1;
  };

  Status check_header(const wire::StepCommand& command) const;
  Status check_admit(const wire::SequenceAdmit& admit) const;
  Status check_controls(std::uint32_t seq, const wire::SamplingControls& controls) const;
  Status check_tokens(std::uint32_t seq, std::string_view what,
                      const std::vector<std::int32_t>& tokens) const;
  Status release_and_admit(const wire::StepCommand& command, StepInputs& inputs);
  Status append_copies(const wire::StepCommand& command, StepInputs& inputs) const;
  Status check_chunk(const wire::StepCommand& command, const Chunk& chunk) const;
  Status append_blocks(const wire::StepCommand& command, const Chunk& chunk);
  void append_rows(const wire::StepCommand& command, const Chunk& chunk, StepInputs& inputs);
  void append_score_rows(const wire::StepCommand& command, const Chunk& chunk, StepInputs& inputs);
  Status apply_chunk(const wire::StepCommand& command, const Chunk& chunk, StepInputs& inputs);
  Status apply_all(const wire::StepCommand& command, StepInputs& inputs);
  [[nodiscard]] bool in_vocabulary(std::int32_t token) const {
    return token >= 0 && token < limits_.vocab_size;
  }

  SequenceLimits limits_;
  std::vector<Slot> slots_;  ///< [max_seqs]
  std::uint32_t num_open_ = 0;
  bool has_step_ = false;
  std::uint64_t last_step_ = 0;
  Status broken_;  ///< the first error: what every later command gets
};

}  // namespace brigade::worker
