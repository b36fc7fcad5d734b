// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/base/check.h"
#include "router/core/planted_bug.h"
#include "router/core/replica.h"

namespace brigade::router {
namespace {

/// Preemptions after which a request starts only with all its blocks, and is then not a victim any
/// more.
constexpr std::uint32_t kMaxPreemptions = 3;

std::uint64_t blocks_for(std::uint64_t num_tokens) {
  return (num_tokens + wire::kBlockSize - 1) / wire::kBlockSize;
}

}  // namespace

bool Replica::can_ever_hold(const LiveRequest& request) const {
  return blocks_for(request.last_position()) <= pool_.num_blocks();
}

std::uint64_t Replica::blocks_to_start(const LiveRequest& request) const {
  // What was preempted before starts with more room each time, so that it cannot go back and forth.
  std::uint64_t tokens = request.tokens.size() + 1;
  if (request.num_preemptions >= kMaxPreemptions) {
    tokens = request.last_position();
  } else if (request.num_preemptions > 0) {
    tokens += std::uint64_t{64} << request.num_preemptions;
  }
  return blocks_for(std::min<std::uint64_t>(tokens, request.last_position()));
}

/// Calls on_hit(block) for the leading blocks of the request that have its names here, in order.
template <typename OnHit>
void Replica::match_prefix(const LiveRequest& request, OnHit on_hit) const {
  if (!request.prompt_scored) return;  // each position must be computed: it is scored
  const std::span<const std::int32_t> tokens = request.tokens;
  const std::span<const BlockHash> hashes = request.chain.hashes();
  // The last token is always computed: its row gives the next one.
  const std::size_t num_last = planted(PlantedBug::kMatchTooFar) ? 0 : 1;
  const std::size_t most = std::min(hashes.size(), (tokens.size() - num_last) / wire::kBlockSize);
  for (std::size_t i = 0; i < most; ++i) {
    const auto block =
        pool_.find(hashes[i], tokens.subspan(i * wire::kBlockSize, wire::kBlockSize));
    if (!block) return;
    on_hit(*block);
  }
}

std::uint32_t Replica::cached_prefix(const LiveRequest& request) const {
  std::uint32_t num_tokens = 0;
  match_prefix(request, [&num_tokens](std::uint32_t) { num_tokens += wire::kBlockSize; });
  return num_tokens;
}

/// Prompt tokens that are computed before one of so many is: shorter ones go first.
std::uint64_t Replica::prefill_ahead(std::uint64_t num_tokens) const {
  if (prefill_backlog_ <= num_tokens) return prefill_backlog_;
  std::uint64_t ahead = 0;
  for (const std::uint32_t slot : prefills_)
    ahead += std::min<std::uint64_t>(sequences_[slot].prefill_left(), num_tokens);
  return ahead;
}

WaitReason Replica::why_not(const LiveRequest& request) const {
  if (free_slots_.count() == 0) return WaitReason::kSlots;
  const std::uint64_t most_ahead = std::uint64_t{options_.pp_size} * options_.step_tokens;
  if (prefill_ahead(request.tokens.size()) >= most_ahead &&
      prefill_ahead(request.tokens.size() - cached_prefix(request)) >= most_ahead) {
    return WaitReason::kBudget;
  }
  return lacks_kv(request) ? WaitReason::kKv : WaitReason::kNothing;
}

bool Replica::lacks_kv(const LiveRequest& request) const {
  const std::uint64_t spare =
      num_requests_ == 0 ? 0 : 1 + num_requests_ / 4 + pool_.num_blocks() / 100;
  const std::uint64_t needed = blocks_to_start(request) + spare;
  if (needed <= pool_.num_available()) return false;
  if (needed > pool_.num_available() + pool_.num_owned() + pool_.num_in_flight()) return true;
  // A block that it shares need not be taken; a cached one is not there to take any more.
  std::uint64_t shared = 0;
  match_prefix(request, [&](std::uint32_t block) { shared += pool_.is_cached(block) ? 0 : 1; });
  return needed > pool_.num_available() + shared;
}

void Replica::attach_blocks(Sequence& sequence) {
  LiveRequest& request = *sequence.request;
  const std::span<const std::int32_t> tokens = request.tokens;
  request.chain.extend(tokens);
  match_prefix(request, [&](std::uint32_t block) { sequence.blocks.push_back(block); });
  for (const std::uint32_t block : sequence.blocks)
    pool_.share(block);
  sequence.num_shared = static_cast<std::uint32_t>(sequence.blocks.size());
  sequence.num_filled = sequence.num_shared;
  sequence.scheduled = sequence.num_shared * wire::kBlockSize;
  const std::uint64_t needed = blocks_to_start(request) - sequence.num_shared;
  const bool allocated = pool_.allocate(needed, sequence.blocks);
  INVARIANT(allocated) << needed << " blocks of request " << request.id;
  join_group(sequence);
  // Named now, so that whoever comes with the same prefix waits for it instead of computing it too.
  if (!request.chain.enabled()) return;
  for (std::uint32_t i = sequence.num_shared; i < sequence.prefill_end / wire::kBlockSize; ++i) {
    pool_.promise(sequence.blocks[i], sequence.id, request.chain.hashes()[i],
                  tokens.subspan(i * wire::kBlockSize, wire::kBlockSize));
  }
}

/// Blocks are filled in order, so the last shared one tells. A step that was issued counts as done:
/// every rank runs steps in order, so whatever is issued after it reads what it wrote; and a step
/// that fails takes the whole epoch with it, and all names.
bool Replica::waits_for_prefix(const Sequence& sequence) const {
  if (planted(PlantedBug::kReadUnfilled)) return false;
  if (sequence.admit_sent) return false;
  if (sequence.forked && forks_.at(sequence.group).writer) return true;
  return sequence.num_shared > 0 && !pool_.is_filled(sequence.blocks[sequence.num_shared - 1]);
}

/// Names the blocks whose tokens are all known and in steps that were issued.
void Replica::note_filled(Sequence& sequence) {
  if (sequence.group != 0 && sequence.scheduled == sequence.prefill_end) {
    Fork& fork = forks_.at(sequence.group);
    if (fork.writer == sequence.id) fork.writer.reset();
  }
  const std::uint32_t num_filled =
      std::min(sequence.scheduled, sequence.num_known) / wire::kBlockSize;
  if (num_filled <= sequence.num_filled) return;
  LiveRequest& request = *sequence.request;
  if (!request.chain.enabled()) return;
  const std::span<const std::int32_t> tokens = request.tokens;
  request.chain.extend(tokens);
  for (std::uint32_t& i = sequence.num_filled; i < num_filled; ++i) {
    const std::uint32_t block = sequence.blocks[i];
    if (pool_.writer(block) == sequence.id ||
        pool_.promise(block, sequence.id, request.chain.hashes()[i],
                      tokens.subspan(i * wire::kBlockSize, wire::kBlockSize))) {
      pool_.set_filled(block);
    }
  }
}

void Replica::detach_blocks(Sequence& sequence) {
  bool waited_for = false;
  for (std::size_t i = sequence.num_filled; i < sequence.blocks.size(); ++i) {
    const std::uint32_t block = sequence.blocks[i];
    if (pool_.writer(block) != sequence.id) continue;
    pool_.set_writer(block, std::nullopt);
    waited_for |= pool_.num_holders(block) > 1;
  }
  if (planted(PlantedBug::kLeakBlocks) && sequence.steps_in_flight == 0) sequence.blocks.clear();
  const bool may_be_touched = sequence.steps_in_flight > 0 && !planted(PlantedBug::kFreeEarly);
  pool_.release(sequence.blocks, may_be_touched ? sequence.last_step : 0);
  if (waited_for) {
    for (Sequence& other : sequences_) {
      if (other.request != nullptr && !other.admit_sent) take_over(other);
    }
  }
  leave_group(sequence);
}

/// What it waits for, and no one is left to fill, it fills itself.
void Replica::take_over(Sequence& sequence) {
  const std::uint32_t num_shared = sequence.num_shared;
  while (sequence.num_shared > 0) {
    const std::uint32_t block = sequence.blocks[sequence.num_shared - 1];
    if (pool_.is_filled(block) || pool_.writer(block)) break;
    pool_.set_writer(block, sequence.id);
    --sequence.num_shared;
  }
  if (sequence.num_shared == num_shared) return;
  prefill_backlog_ -= sequence.prefill_left();
  sequence.forked = false;
  sequence.num_filled = sequence.num_shared;
  sequence.scheduled = sequence.num_shared * wire::kBlockSize;
  prefill_backlog_ += sequence.prefill_left();
}

void Replica::find_blocks(Lane& lane) {
  scratch_ = lane.slots;  // a preemption changes the lane's own list
  for (const std::uint32_t slot : scratch_) {
    Sequence& sequence = sequences_[slot];
    if (sequence.can_decode() && !sequence.has_block_for_next() && !find_block(sequence)) return;
  }
}

bool Replica::find_block(Sequence& sequence) {
  while (!pool_.allocate(1, sequence.blocks)) {
    if (pool_.num_in_flight() > 0) return false;  // some come back with a step that is under way
    Sequence& victim = youngest();
    preempt(victim);
    if (&victim == &sequence) return true;
  }
  return true;
}

Sequence& Replica::youngest() {
  // A request that was moved often enough holds all the blocks it needs and is left alone.
  Sequence* best = nullptr;
  for (Sequence& sequence : sequences_) {
    if (sequence.request == nullptr) continue;
    if (sequence.request->num_preemptions >= kMaxPreemptions) continue;
    if (best == nullptr || sequence.request->order > best->request->order) best = &sequence;
  }
  INVARIANT(best != nullptr) << "KV of replica " << options_.id
                             << " ran out with no one to preempt";
  return *best;
}

void Replica::preempt(Sequence& victim) {
  preempted_.push_back(victim.request);
  detach(victim);
}

/// The blocks' own ledger, and that each has as many holders as there are sequences with it.
void Replica::audit_holders() const {
  pool_.audit();
  std::vector<std::uint32_t> num_holders(pool_.num_blocks(), 0);
  for (const Sequence& sequence : sequences_) {
    for (const std::uint32_t block : sequence.blocks)
      ++num_holders[block];
  }
  for (const auto& [group, fork] : forks_) {
    if (fork.block) ++num_holders[*fork.block];
  }
  for (std::uint32_t block = 0; block < num_holders.size(); ++block) {
    INVARIANT_EQ(num_holders[block], pool_.num_holders(block)) << "block " << block;
  }
}

void Replica::audit_when_idle(TimePoint now) {
  constexpr Duration kPeriod = std::chrono::seconds(10);
  if (num_requests_ > 0 || !flight_.empty() || audited_steps_ == num_steps_ended_) return;
  if (audited_ != TimePoint::min() && now - audited_ < kPeriod) return;
  audited_ = now;
  audited_steps_ = num_steps_ended_;
  audit_idle();
}

void Replica::audit_idle() const {
  INVARIANT(num_requests_ == 0 && flight_.empty()) << "replica " << options_.id << " is not idle";
  audit_holders();
  INVARIANT_EQ(pool_.num_owned(), 0U);
  INVARIANT_EQ(pool_.num_in_flight(), 0U);
}

}  // namespace brigade::router
