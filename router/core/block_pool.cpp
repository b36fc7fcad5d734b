// SPDX-License-Identifier: Apache-2.0
#include "router/core/block_pool.h"

#include <algorithm>

#include "common/base/check.h"

namespace brigade::router {

BlockPool::BlockPool(std::uint64_t num_blocks, bool keep_cached)
    : keep_cached_(keep_cached), free_(num_blocks, /*full=*/true), blocks_(num_blocks) {}

bool BlockPool::allocate(std::uint64_t count, std::vector<std::uint32_t>& blocks) {
  if (num_available() < count) return false;
  for (std::uint64_t i = 0; i < count; ++i)
    blocks.push_back(take());
  return true;
}

std::uint32_t BlockPool::take() {
  std::uint32_t id = oldest_;
  if (free_.count() > 0) {
    id = static_cast<std::uint32_t>(*free_.lowest());
    free_.erase(id);
  } else {
    uncache(id);
    unname(id);
  }
  blocks_[id].state = State::kOwned;
  blocks_[id].num_holders = 1;
  return id;
}

void BlockPool::share(std::uint32_t id) {
  INVARIANT_LT(id, blocks_.size());
  Block& block = blocks_[id];
  INVARIANT(block.state != State::kFree) << "block " << id << " is shared but free";
  if (block.state == State::kCached) uncache(id);
  if (block.state == State::kInFlight) --num_in_flight_;
  block.state = State::kOwned;
  ++block.num_holders;
}

void BlockPool::release(std::vector<std::uint32_t>& blocks, std::uint64_t step) {
  std::for_each(blocks.rbegin(), blocks.rend(),
                [&](std::uint32_t block) { release_one(block, step); });
  blocks.clear();
}

void BlockPool::release_one(std::uint32_t id, std::uint64_t step) {
  INVARIANT_LT(id, blocks_.size());
  Block& block = blocks_[id];
  INVARIANT(block.state == State::kOwned && block.num_holders > 0)
      << "block " << id << " released in state " << static_cast<int>(block.state) << " with "
      << block.num_holders << " holders";
  block.busy_until = std::max(block.busy_until, step);
  if (--block.num_holders > 0) return;
  if (names_.contains(id) && !(block.filled && keep_cached_)) unname(id);
  if (block.busy_until <= last_ended_) {
    settle(id);
    return;
  }
  block.state = State::kInFlight;
  ++num_in_flight_;
  retired_[block.busy_until].push_back(id);
}

/// No one holds it and no step touches it any more.
void BlockPool::settle(std::uint32_t id) {
  if (names_.contains(id)) {
    cache(id);
    return;
  }
  blocks_[id].state = State::kFree;
  free_.insert(id);
}

void BlockPool::step_ended(std::uint64_t step) {
  last_ended_ = step;
  // Steps end in order: whatever was to wait for an earlier one may go as well.
  while (!retired_.empty() && retired_.begin()->first <= step) {
    for (const std::uint32_t id : retired_.begin()->second) {
      const Block& block = blocks_[id];
      if (block.state != State::kInFlight || block.busy_until > step) continue;
      --num_in_flight_;
      settle(id);
    }
    retired_.erase(retired_.begin());
  }
}

bool BlockPool::promise(std::uint32_t id, RequestId writer, const BlockHash& hash,
                        std::span<const std::int32_t> tokens) {
  INVARIANT(blocks_[id].state == State::kOwned) << "block " << id << " is named but not owned";
  if (names_.contains(id) || names_.find(hash, tokens)) return false;
  names_.insert(id, hash, tokens);
  blocks_[id].filled = false;
  blocks_[id].writer = writer;
  return true;
}

void BlockPool::set_filled(std::uint32_t id) {
  INVARIANT(names_.contains(id)) << "block " << id;
  blocks_[id].filled = true;
  blocks_[id].writer.reset();
}

void BlockPool::set_writer(std::uint32_t id, std::optional<RequestId> writer) {
  INVARIANT(names_.contains(id) && !blocks_[id].filled) << "block " << id;
  blocks_[id].writer = writer;
}

void BlockPool::unname(std::uint32_t id) {
  names_.erase(id);
  blocks_[id].filled = false;
  blocks_[id].writer.reset();
}

void BlockPool::cache(std::uint32_t id) {
  Block& block = blocks_[id];
  block.state = State::kCached;
  block.older = newest_;
  block.newer = kNone;
  (newest_ == kNone ? oldest_ : blocks_[newest_].newer) = id;
  newest_ = id;
  ++num_cached_;
}

void BlockPool::uncache(std::uint32_t id) {
  Block& block = blocks_[id];
  (block.older == kNone ? oldest_ : blocks_[block.older].newer) = block.newer;
  (block.newer == kNone ? newest_ : blocks_[block.newer].older) = block.older;
  --num_cached_;
}

void BlockPool::audit() const {
  std::uint64_t num_in_flight = 0;
  std::uint64_t num_free = 0;
  std::uint64_t num_cached = 0;
  std::uint64_t num_named = 0;
  for (std::uint32_t id = 0; id < blocks_.size(); ++id) {
    const Block& block = blocks_[id];
    const bool named = names_.contains(id);
    INVARIANT_EQ(free_.contains(id), block.state == State::kFree);
    INVARIANT_EQ(block.num_holders > 0, block.state == State::kOwned) << "block " << id;
    INVARIANT(named || (!block.filled && !block.writer)) << "block " << id;
    INVARIANT(!block.filled || !block.writer) << "block " << id;
    INVARIANT(!named || block.filled || block.num_holders > 0) << "block " << id;
    INVARIANT(named || block.state != State::kCached) << "block " << id;
    INVARIANT(!named || block.state != State::kFree) << "block " << id;
    INVARIANT(block.state == State::kOwned || block.state == State::kInFlight ||
              block.busy_until <= last_ended_)
        << "block " << id;
    num_free += block.state == State::kFree ? 1 : 0;
    num_cached += block.state == State::kCached ? 1 : 0;
    num_in_flight += block.state == State::kInFlight ? 1 : 0;
    num_named += named ? 1 : 0;
  }
  INVARIANT_EQ(num_free, free_.count());
  INVARIANT_EQ(num_cached, num_cached_);
  INVARIANT_EQ(num_in_flight, num_in_flight_);
  INVARIANT_EQ(num_named, names_.size());
  std::uint64_t listed = 0;
  for (std::uint32_t id = oldest_; id != kNone; id = blocks_[id].newer) {
    INVARIANT(blocks_[id].state == State::kCached) << "block " << id;
    ++listed;
  }
  INVARIANT_EQ(listed, num_cached_);
}

}  // namespace brigade::router
