// SPDX-License-Identifier: Apache-2.0
#include "router/core/block_pool.h"

#include "common/base/check.h"

namespace brigade::router {
namespace {

/// Debug builds audit after each event: a pass over all blocks is for pools that take microseconds.
constexpr std::uint64_t kFullAuditBlocks = 4096;

}  // namespace

BlockPool::BlockPool(std::uint64_t num_blocks)
    : free_(num_blocks, /*full=*/true), state_(num_blocks, State::kFree), owner_(num_blocks, 0) {}

bool BlockPool::allocate(RequestId owner, std::uint64_t count, std::vector<std::uint32_t>& blocks) {
  if (free_.count() < count) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t block = *free_.lowest();
    free_.erase(block);
    state_[block] = State::kOwned;
    owner_[block] = owner;
    blocks.push_back(static_cast<std::uint32_t>(block));
  }
  return true;
}

void BlockPool::check_owned(RequestId owner, std::uint32_t block) const {
  INVARIANT_LT(block, state_.size());
  INVARIANT(state_[block] == State::kOwned && owner_[block] == owner)
      << "block " << block << " given back by request " << owner << ": state "
      << static_cast<int>(state_[block]) << ", owner " << owner_[block];
}

void BlockPool::free(RequestId owner, std::vector<std::uint32_t>& blocks) {
  for (const std::uint32_t block : blocks) {
    check_owned(owner, block);
    state_[block] = State::kFree;
    free_.insert(block);
  }
  blocks.clear();
}

void BlockPool::retire(RequestId owner, std::vector<std::uint32_t>& blocks, std::uint64_t step) {
  if (blocks.empty()) return;
  std::vector<std::uint32_t>& retired = retired_[step];
  for (const std::uint32_t block : blocks) {
    check_owned(owner, block);
    state_[block] = State::kInFlight;
    retired.push_back(block);
  }
  num_in_flight_ += blocks.size();
  blocks.clear();
}

void BlockPool::step_ended(std::uint64_t step) {
  // Steps end in order: whatever was to wait for an earlier one may go as well.
  while (!retired_.empty() && retired_.begin()->first <= step) {
    for (const std::uint32_t block : retired_.begin()->second) {
      state_[block] = State::kFree;
      free_.insert(block);
    }
    num_in_flight_ -= retired_.begin()->second.size();
    retired_.erase(retired_.begin());
  }
}

bool BlockPool::is_owned_by(std::uint32_t block, RequestId owner) const {
  return block < state_.size() && state_[block] == State::kOwned && owner_[block] == owner;
}

void BlockPool::audit() const {
  std::uint64_t num_retired = 0;
  for (const auto& [step, blocks] : retired_)
    num_retired += blocks.size();
  INVARIANT_EQ(num_retired, num_in_flight_);
  if (num_blocks() > kFullAuditBlocks) return;
  std::uint64_t num_free = 0;
  std::uint64_t num_in_flight = 0;
  for (std::size_t block = 0; block < state_.size(); ++block) {
    INVARIANT_EQ(free_.contains(block), state_[block] == State::kFree);
    num_free += state_[block] == State::kFree ? 1 : 0;
    num_in_flight += state_[block] == State::kInFlight ? 1 : 0;
  }
  INVARIANT_EQ(num_free, free_.count());
  INVARIANT_EQ(num_in_flight, num_in_flight_);
}

}  // namespace brigade::router
