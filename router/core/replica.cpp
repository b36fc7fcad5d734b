// SPDX-License-Identifier: Apache-2.0
#include "router/core/replica.h"

#include <algorithm>

#include "common/base/check.h"
#include "router/core/planted_bug.h"

namespace brigade::router {
namespace {

/// Steps in flight are two a lane at most, and a rank queues 64.
constexpr std::uint32_t kMaxLanes = 32;
/// Debug builds audit after each event: a pass over all blocks is for pools that take microseconds.
constexpr std::uint64_t kFullAuditBlocks = 4096;

}  // namespace

Replica::Replica(const Options& options)
    : options_(options),
      pool_(options.num_blocks, options.prefix_cache),
      free_slots_(options.max_seqs, /*full=*/true),
      sequences_(options.max_seqs),
      tuner_(options.pp_size, std::max(options.pp_size, kMaxLanes)) {
  set_num_lanes(options.pp_size);
}

void Replica::admit(LiveRequest& request) {
  INVARIANT(can_take(request)) << "request " << request.id << " on replica " << options_.id;
  const auto slot = static_cast<std::uint32_t>(*free_slots_.lowest());
  free_slots_.erase(slot);
  Sequence& sequence = sequences_[slot];
  std::vector<std::uint32_t> blocks = std::move(sequence.blocks);
  sequence = {};
  sequence.blocks = std::move(blocks);
  sequence.request = &request;
  sequence.id = request.id;
  sequence.in_use = true;
  sequence.scoring = !request.prompt_scored;
  sequence.last_position = request.last_position();
  sequence.prefill_end = request.only_scores() ? request.num_prompt - 1
                                               : static_cast<std::uint32_t>(request.tokens.size());
  if (planted(PlantedBug::kRepeatToken) && request.num_fail_overs > 0 && request.num_output() > 0) {
    --sequence.prefill_end;
  }
  sequence.expected_output = request.expected_output();
  sequence.num_known = static_cast<std::uint32_t>(request.tokens.size());
  attach_blocks(sequence);
  prefills_.push_back(slot);
  request.slot = slot;
  ++num_requests_;
  total_cost_ += sequence.cost();
  prefill_backlog_ += sequence.prefill_left();
  expected_output_ += sequence.expected_output;
}

void Replica::remove(std::uint32_t slot, RequestId request) {
  Sequence& sequence = sequences_[slot];
  INVARIANT(sequence.request != nullptr && sequence.id == request)
      << "request " << request << " is not in slot " << slot << " of replica " << options_.id;
  detach(sequence);
}

void Replica::detach(Sequence& sequence) {
  const auto slot = static_cast<std::uint32_t>(&sequence - sequences_.data());
  leave_lane(slot);
  --num_requests_;
  total_cost_ -= sequence.cost();
  prefill_backlog_ -= sequence.prefill_left();
  expected_output_ -= sequence.expected_output;
  sequence.request = nullptr;
  detach_blocks(sequence);
  if (sequence.steps_in_flight == 0) close(slot);
}

void Replica::close(std::uint32_t slot) {
  Sequence& sequence = sequences_[slot];
  sequence.in_use = false;
  // The next command releases it before it admits anything, so the number may be taken at once.
  if (sequence.admit_sent && !planted(PlantedBug::kForgetRelease)) release_.push_back(slot);
  free_slots_.insert(slot);
}

std::vector<LiveRequest*> Replica::take_preempted() {
  return std::exchange(preempted_, {});
}

TimePoint Replica::owed_since() const {
  return flight_.empty() ? kNever : std::max(flight_.front().issued, last_result_);
}

std::vector<LiveRequest*> Replica::requests() const {
  std::vector<LiveRequest*> requests;
  for (const Sequence& sequence : sequences_) {
    if (sequence.request != nullptr) requests.push_back(sequence.request);
  }
  return requests;
}

void Replica::audit() const {
  if (pool_.num_blocks() <= kFullAuditBlocks) audit_holders();
  std::uint64_t backlog = 0;
  std::uint64_t cost = 0;
  std::uint32_t num_requests = 0;
  for (std::size_t slot = 0; slot < sequences_.size(); ++slot) {
    const Sequence& sequence = sequences_[slot];
    INVARIANT_EQ(sequence.in_use, !free_slots_.contains(slot));
    if (!sequence.in_use) continue;
    INVARIANT(sequence.request != nullptr || sequence.steps_in_flight > 0) << "slot " << slot;
    INVARIANT_EQ(sequence.blocks.empty(), sequence.request == nullptr);
    if (sequence.request == nullptr) continue;
    INVARIANT_EQ(sequence.request->slot, slot);
    ++num_requests;
    backlog += sequence.prefill_left();
    cost += sequence.cost();
    INVARIANT_EQ(sequence.num_known, sequence.request->tokens.size());
  }
  INVARIANT_EQ(backlog, prefill_backlog_);
  INVARIANT_EQ(num_requests, num_requests_);
  INVARIANT_EQ(cost, total_cost_);
  std::size_t in_lanes = prefills_.size();
  for (const std::uint32_t slot : prefills_)
    INVARIANT(!sequences_[slot].lane && sequences_[slot].request != nullptr) << "slot " << slot;
  std::size_t in_flight = 0;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    in_lanes += lanes_[lane].slots.size();
    in_flight += lanes_[lane].in_flight;
    std::uint64_t lane_cost = 0;
    for (const std::uint32_t slot : lanes_[lane].slots) {
      INVARIANT(sequences_[slot].request != nullptr) << "slot " << slot << " in lane " << lane;
      INVARIANT(sequences_[slot].lane == lane) << "slot " << slot << " in lane " << lane;
      lane_cost += sequences_[slot].cost();
    }
    INVARIANT_EQ(lane_cost, lanes_[lane].cost);
  }
  INVARIANT_EQ(in_lanes, num_requests_);
  INVARIANT_EQ(in_flight, flight_.size());
}

}  // namespace brigade::router
