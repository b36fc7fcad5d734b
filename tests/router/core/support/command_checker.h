// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "common/wire/messages.h"

namespace brigade::router::testing {

/// Follows the command stream of one epoch as it leaves the router and the results as they come
/// back, and ends the process when the stream breaks the contract: step numbers, slots, positions,
/// block tables, a block written that a later step of another slot reads too, a slot reused while a
/// step in flight may touch it.
class CommandChecker final {
 public:
  CommandChecker(std::uint64_t num_blocks, std::uint32_t step_tokens)
      : num_blocks_(num_blocks), step_tokens_(step_tokens) {}

  void on_command(const wire::StepCommand& command);
  void on_result(const wire::StepResult& result);

  [[nodiscard]] std::size_t max_in_flight() const { return max_in_flight_; }
  [[nodiscard]] std::uint64_t num_tokens() const { return num_tokens_; }

 private:
  struct Slot {
    bool started = false;
    bool sampled = false;
    bool is_over = false;  ///< another writes one of its blocks
    std::uint32_t next_position = 0;
    std::uint64_t last_step = 0;
    std::vector<std::uint32_t> blocks;
  };
  void take_block(std::uint32_t writer, std::uint32_t block);
  void check_sequence(const wire::StepCommand& command, std::size_t index);

  std::uint64_t num_blocks_;
  std::uint32_t step_tokens_;
  std::uint64_t last_step_ = 0;
  std::map<std::uint32_t, Slot> slots_;                   ///< open ones
  std::map<std::uint32_t, std::uint32_t> num_holders_;    ///< block -> open slots that have it
  std::map<std::uint64_t, wire::StepCommand> in_flight_;  ///< by step
  std::size_t max_in_flight_ = 0;
  std::uint64_t num_tokens_ = 0;  ///< of all steps
};

}  // namespace brigade::router::testing
