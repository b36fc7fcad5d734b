// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/wire/messages.h"
#include "router/core/sequence.h"

namespace brigade::router {

/// Writes sequences into one StepCommand and notes beside it what the result must bring. Advances
/// each sequence past what it has written.
class StepBuilder final {
 public:
  /// Clears both and makes room for `num_seqs`. `step`, `lane` and the like are filled in.
  StepBuilder(wire::StepCommand& command, FlightStep& flight, std::uint64_t epoch,
              std::uint64_t step, std::uint32_t lane, std::size_t num_seqs);

  /// One token: the sequence's newest, or the sample that is still in flight. Needs a block for it.
  void add_decode(std::uint32_t slot, Sequence& sequence);
  /// The next `num_tokens` known tokens. Needs the blocks for them.
  void add_chunk(std::uint32_t slot, Sequence& sequence, std::uint32_t num_tokens);

  /// Copies a block's KV before this step and those after it.
  void add_copy(std::uint32_t from, std::uint32_t to);
  /// Whether the command has room for what the sequence's ranks must be told of it. Of one that is
  /// the first always.
  [[nodiscard]] bool has_room_for(const Sequence& sequence) const;

  [[nodiscard]] bool empty() const { return flight_.items.empty(); }

 private:
  void add(std::uint32_t slot, Sequence& sequence, std::uint32_t num_tokens, std::uint8_t flags,
           std::int32_t next_token);
  void admit(std::uint32_t slot, Sequence& sequence);

  wire::StepCommand& command_;
  FlightStep& flight_;
  std::size_t num_control_tokens_ = 0;  ///< of those admitted in this command
};

}  // namespace brigade::router
