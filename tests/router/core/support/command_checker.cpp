// SPDX-License-Identifier: Apache-2.0
#include "tests/router/core/support/command_checker.h"

#include <algorithm>

#include "common/base/check.h"

namespace brigade::router::testing {

void CommandChecker::on_command(const wire::StepCommand& command) {
  INVARIANT_EQ(command.step, last_step_ + 1);
  last_step_ = command.step;
  const std::size_t count = command.seq.size();
  INVARIANT(count > 0) << "an empty step";
  INVARIANT(command.position.size() == count && command.flags.size() == count &&
            command.next_token.size() == count && command.cu_tokens.size() == count + 1 &&
            command.cu_blocks.size() == count + 1)
      << "lists of step " << command.step;
  INVARIANT_EQ(command.cu_tokens.back(), command.tokens.size());
  INVARIANT_EQ(command.cu_blocks.back(), command.blocks.size());
  INVARIANT_LE(command.tokens.size(), step_tokens_);
  for (const std::uint32_t slot : command.release) {
    const auto it = slots_.find(slot);
    INVARIANT(it != slots_.end()) << "slot " << slot << " released, but not open";
    for (const auto& [step, other] : in_flight_) {
      INVARIANT_EQ(std::count(other.seq.begin(), other.seq.end(), slot), 0);
    }
    for (const std::uint32_t block : it->second.blocks)
      --num_holders_[block];
    slots_.erase(it);
  }
  for (const wire::SequenceAdmit& admit : command.admit) {
    const bool is_new = slots_.emplace(admit.seq, Slot{}).second;
    INVARIANT(is_new) << "slot " << admit.seq << " admitted twice";
    INVARIANT(admit.top_p > 0 && admit.top_p <= 1 && admit.top_k >= 0) << "slot " << admit.seq;
  }
  for (std::size_t i = 0; i < count; ++i)
    check_sequence(command, i);
  INVARIANT_EQ(command.copy_from.size(), command.copy_to.size());
  for (std::size_t i = 0; i < command.copy_to.size(); ++i) {
    INVARIANT_LT(command.copy_from[i], num_blocks_);
    INVARIANT_EQ(num_holders_[command.copy_to[i]], 1U) << "block " << command.copy_to[i];
    INVARIANT_EQ(std::count(command.blocks.begin(), command.blocks.end(), command.copy_to[i]), 1);
  }
  in_flight_.emplace(command.step, command);
  num_tokens_ += command.tokens.size();
  max_in_flight_ = std::max(max_in_flight_, in_flight_.size());
}

void CommandChecker::check_sequence(const wire::StepCommand& command, std::size_t index) {
  const std::uint32_t id = command.seq[index];
  const auto it = slots_.find(id);
  INVARIANT(it != slots_.end()) << "slot " << id << " in a step, but not open";
  Slot& slot = it->second;
  INVARIANT_NE(slot.last_step, command.step);
  const std::uint32_t num_tokens = command.cu_tokens[index + 1] - command.cu_tokens[index];
  INVARIANT(num_tokens > 0) << "slot " << id << " without tokens";
  if (!slot.started) slot.next_position = command.position[index];  // after what it shares
  INVARIANT_EQ(command.position[index], slot.next_position);
  const std::uint8_t flags = command.flags[index];
  if ((flags & wire::kTokenFromSample) != 0) {
    INVARIANT(slot.sampled && num_tokens == 1 && command.tokens[command.cu_tokens[index]] == -1)
        << "slot " << id << " takes a sample that it has not";
  }
  if (command.next_token[index] != -1) {
    INVARIANT((flags & wire::kScorePrompt) != 0 && (flags & wire::kSampleToken) == 0)
        << "slot " << id << " has a next token with flags " << +flags;
  }
  for (std::uint32_t i = command.cu_blocks[index]; i < command.cu_blocks[index + 1]; ++i) {
    const std::uint32_t block = command.blocks[i];
    INVARIANT_LT(block, num_blocks_);
    ++num_holders_[block];
    slot.blocks.push_back(block);
  }
  const std::uint32_t first = slot.next_position / wire::kBlockSize;
  slot.next_position += num_tokens;
  INVARIANT_LE(slot.next_position, slot.blocks.size() * wire::kBlockSize);
  INVARIANT(!slot.is_over) << "slot " << id << " goes on though one of its blocks was given away";
  for (std::uint32_t i = first; i * wire::kBlockSize < slot.next_position; ++i)
    take_block(id, slot.blocks[i]);
  slot.started = true;
  slot.sampled = (flags & wire::kSampleToken) != 0;
  slot.last_step = command.step;
}

/// Who writes a block has it alone. Another slot may have it still whose request has ended, and
/// which takes part in no step any more.
void CommandChecker::take_block(std::uint32_t writer, std::uint32_t block) {
  if (num_holders_[block] == 1) return;
  for (auto& [id, other] : slots_) {
    if (id != writer && std::ranges::count(other.blocks, block) > 0) other.is_over = true;
  }
}

void CommandChecker::on_result(const wire::StepResult& result) {
  in_flight_.erase(result.step);
}

}  // namespace brigade::router::testing
