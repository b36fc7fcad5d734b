// SPDX-License-Identifier: Apache-2.0
#include "router/core/replica.h"

#include <algorithm>

#include "common/base/check.h"
#include "router/core/step_builder.h"

namespace brigade::router {
namespace {

/// A chunk of an idle pipeline is not cut smaller than this: a step has a fixed cost too.
constexpr std::uint32_t kMinChunk = 32;
/// Debug builds audit after each event: a pass over all blocks is for pools that take microseconds.
constexpr std::uint64_t kFullAuditBlocks = 4096;

}  // namespace

Replica::Replica(const Options& options)
    : options_(options),
      pool_(options.num_blocks, options.prefix_cache),
      free_slots_(options.max_seqs, /*full=*/true),
      sequences_(options.max_seqs),
      lanes_(options.pp_size) {
  for (std::uint32_t lane = 0; lane < options.pp_size; ++lane)
    lane_order_.push_back(lane);
}

std::uint32_t Replica::cheapest_lane() const {
  std::uint32_t best = 0;
  std::uint64_t best_cost = ~std::uint64_t{0};
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    // In rows of a decode step: one a sequence, attention over about 1,000 tokens as much again, a
    // prefill its chunks.
    std::uint64_t cost = lanes_[lane].in_flight;
    for (const std::uint32_t slot : lanes_[lane].slots) {
      const Sequence& sequence = sequences_[slot];
      cost += 1024 + sequence.scheduled + std::uint64_t{4} * sequence.prefill_left();
    }
    if (cost < best_cost) {
      best_cost = cost;
      best = lane;
    }
  }
  return best;
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
  sequence.expected_output = request.expected_output();
  sequence.lane = cheapest_lane();
  attach_blocks(sequence);
  lanes_[sequence.lane].slots.push_back(slot);
  request.slot = slot;
  ++num_requests_;
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
  std::vector<std::uint32_t>& slots = lanes_[sequence.lane].slots;
  slots.erase(std::find(slots.begin(), slots.end(), slot));
  --num_requests_;
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
  if (sequence.admit_sent) release_.push_back(slot);
  free_slots_.insert(slot);
}

bool Replica::has_work(const Lane& lane) const {
  return std::any_of(lane.slots.begin(), lane.slots.end(), [this](std::uint32_t slot) {
    return can_prefill(sequences_[slot]) || sequences_[slot].can_decode();
  });
}

bool Replica::has_prefill(const Lane& lane) const {
  return std::any_of(lane.slots.begin(), lane.slots.end(),
                     [this](std::uint32_t slot) { return can_prefill(sequences_[slot]); });
}

bool Replica::plan(TimePoint now, wire::StepCommand& command) {
  bool blocked = false;  // a lane before this one waits for its turn: no step may overtake it
  const auto issue = [&](std::size_t turn, bool prefill_only) {
    const std::uint32_t lane = lane_order_[turn];
    if (!build(lane, prefill_only, now, command)) return false;
    lane_order_.erase(lane_order_.begin() + static_cast<std::ptrdiff_t>(turn));
    lane_order_.push_back(lane);
    return true;
  };
  for (std::size_t turn = 0; turn < lane_order_.size(); ++turn) {
    const Lane& lane = lanes_[lane_order_[turn]];
    if (!has_work(lane)) continue;
    if (lane.in_flight > 0 && (blocked || lane.in_flight >= kMaxLaneSteps)) {
      blocked = true;
    } else if (issue(turn, /*prefill_only=*/false)) {
      return true;
    }
  }
  // Chunks of a prompt wait for no sample: one long prompt alone may fill all stages.
  for (std::size_t turn = 0; turn < lane_order_.size() && flight_.size() < lanes_.size(); ++turn) {
    if (issue(turn, /*prefill_only=*/true)) return true;
  }
  return false;
}

bool Replica::build(std::uint32_t lane_index, bool prefill_only, TimePoint now,
                    wire::StepCommand& command) {
  Lane& lane = lanes_[lane_index];
  if (!prefill_only) find_blocks(lane);
  FlightStep flight;
  if (!spare_flights_.empty()) {
    flight = std::move(spare_flights_.back());
    spare_flights_.pop_back();
  }
  StepBuilder builder(command, flight, options_.epoch, last_step_ + 1, lane_index);
  std::uint32_t budget = options_.step_tokens;
  if (!prefill_only) {
    // A part is kept for prompts, so that a full lane does not starve them.
    const std::uint32_t kept = has_prefill(lane) ? std::max(budget / 4, 1U) : 0;
    budget -= kept;
    add_decodes(lane, builder, budget);
    budget += kept;
  }
  add_prefills(lane, builder, budget);
  if (builder.empty()) {
    spare_flights_.push_back(std::move(flight));
    return false;
  }
  ++last_step_;
  command.release.swap(release_);
  flight.plan_hash = wire::plan_hash(command);
  flight.issued = now;
  for (const FlightStep::Item& item : flight.items)
    note_filled(sequences_[item.slot]);
  flight_.push_back(std::move(flight));
  ++lane.in_flight;
  return true;
}

void Replica::add_decodes(Lane& lane, StepBuilder& builder, std::uint32_t& budget) {
  const std::size_t count = lane.slots.size();
  const std::size_t start = count == 0 ? 0 : lane.cursor % count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t slot = lane.slots[(start + i) % count];
    Sequence& sequence = sequences_[slot];
    if (!sequence.can_decode() || !sequence.has_block_for_next()) continue;
    if (budget == 0) {
      lane.cursor = (start + i) % count;
      return;
    }
    builder.add_decode(slot, sequence);
    --budget;
  }
}

std::uint32_t Replica::chunk_size(Sequence& sequence, std::uint32_t budget) const {
  // Equal chunks, so that the last one is not a crumb: equal steps keep the stages busy.
  const std::uint32_t left = sequence.prefill_left();
  if (sequence.chunk_limit == 0) {
    const auto num_stages = static_cast<std::uint32_t>(lanes_.size());
    const bool stages_idle = flight_.size() + 1 < num_stages;
    const std::uint32_t num_chunks = stages_idle ? std::min(num_stages, left / kMinChunk) : 1;
    sequence.chunk_limit = num_chunks <= 1 ? left : (left + num_chunks - 1) / num_chunks;
  }
  budget = std::min(budget, sequence.chunk_limit);
  const std::uint32_t num_chunks = (left + budget - 1) / budget;
  return (left + num_chunks - 1) / num_chunks;
}

void Replica::add_prefills(Lane& lane, StepBuilder& builder, std::uint32_t& budget) {
  for (const std::uint32_t slot : lane.slots) {
    if (budget == 0) return;
    Sequence& sequence = sequences_[slot];
    if (!can_prefill(sequence)) continue;
    const std::uint32_t chunk = chunk_size(sequence, budget);
    builder.add_chunk(slot, sequence, chunk);
    prefill_backlog_ -= chunk;
    budget -= chunk;
  }
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
  }
  INVARIANT_EQ(backlog, prefill_backlog_);
  INVARIANT_EQ(num_requests, num_requests_);
  std::size_t in_lanes = 0;
  std::size_t in_flight = 0;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    in_lanes += lanes_[lane].slots.size();
    in_flight += lanes_[lane].in_flight;
    for (const std::uint32_t slot : lanes_[lane].slots) {
      INVARIANT(sequences_[slot].request != nullptr) << "slot " << slot << " in lane " << lane;
      INVARIANT_EQ(sequences_[slot].lane, lane);
    }
  }
  INVARIANT_EQ(in_lanes, num_requests_);
  INVARIANT_EQ(in_flight, flight_.size());
}

}  // namespace brigade::router
