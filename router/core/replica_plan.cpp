// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "router/core/planted_bug.h"
#include "router/core/replica.h"
#include "router/core/step_builder.h"

namespace brigade::router {
namespace {

/// Chunks of a step together are not made smaller than this to even out steps: a step has a fixed
/// cost too, and short prompts should not wait.
constexpr std::uint32_t kMinChunk = 32;

}  // namespace

bool Replica::has_prompt() const {
  return std::any_of(prefills_.begin(), prefills_.end(),
                     [this](std::uint32_t slot) { return can_prefill(sequences_[slot]); });
}

bool Replica::has_decode(const Lane& lane) const {
  return std::any_of(lane.slots.begin(), lane.slots.end(),
                     [this](std::uint32_t slot) { return sequences_[slot].can_decode(); });
}

bool Replica::plan(TimePoint now, wire::StepCommand& command) {
  const bool prompts = has_prompt();
  bool blocked = false;  // a lane before this one waits for its turn: no step may overtake it
  for (std::size_t turn = 0; turn < lane_order_.size(); ++turn) {
    const std::uint32_t index = lane_order_[turn];
    const Lane& lane = lanes_[index];
    if (!has_decode(lane)) {
      // Chunks wait for no sample. One step more than there are lanes hides the way to the router.
      if (!prompts || (lane.in_flight > 0 && flight_.size() > lane_order_.size())) continue;
    } else if (lane.in_flight > 0 && (blocked || is_full(lane))) {
      blocked = true;
      continue;
    }
    if (!build(index, now, command)) continue;
    lane_order_.erase(lane_order_.begin() + static_cast<std::ptrdiff_t>(turn));
    lane_order_.push_back(index);
    return true;
  }
  return false;
}

bool Replica::build(std::uint32_t lane_index, TimePoint now, wire::StepCommand& command) {
  Lane& lane = lanes_[lane_index];
  find_blocks(lane);
  FlightStep flight;
  if (!spare_flights_.empty()) {
    flight = std::move(spare_flights_.back());
    spare_flights_.pop_back();
  }
  StepBuilder builder(command, flight, options_.epoch, last_step_ + 1, lane_index,
                      lane.slots.size() + prefills_.size());
  // A part is kept for prompts, so that a full lane does not starve them.
  const std::uint32_t kept = has_prompt() ? std::max(options_.step_tokens / 4, 1U) : 0;
  std::uint32_t budget = options_.step_tokens - kept;
  if (planted(PlantedBug::kBudgetOffByOne)) ++budget;
  if (planted(PlantedBug::kDependOnClock) && now > TimePoint(std::chrono::hours(1))) budget /= 2;
  add_decodes(lane, builder, budget);
  if (kept > 0) add_prefills(lane_index, builder, prefill_budget(lane, budget + kept));
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
    const std::size_t at = start + i < count ? start + i : start + i - count;
    const std::uint32_t slot = lane.slots[at];
    Sequence& sequence = sequences_[slot];
    if (!sequence.can_decode() || !sequence.has_block_for_next()) continue;
    if (budget == 0) {
      lane.cursor = at;
      return;
    }
    builder.add_decode(slot, sequence);
    ++lane.cost;
    ++total_cost_;
    --budget;
  }
}

/// Prefill rows that bring this lane's step to the load that all lanes' next steps would have if
/// the prompts that wait were shared out evenly.
std::uint32_t Replica::prefill_budget(const Lane& lane, std::uint32_t room) const {
  const double weight = step_cost_.decode_weight();
  std::size_t num_decodes = 0;
  for (const std::uint32_t index : lane_order_)
    num_decodes += lanes_[index].slots.size();
  const double total =
      weight * static_cast<double>(num_decodes) + static_cast<double>(prefill_backlog_);
  const double level = total / static_cast<double>(num_lanes());
  const double rows = std::ceil(level - weight * static_cast<double>(lane.slots.size()));
  const double least = std::min(kMinChunk, room);
  return static_cast<std::uint32_t>(std::clamp(rows, least, static_cast<double>(room)));
}

/// Where the prompts that wait are more than the budget, the one that was admitted first gets a
/// third of it, so that it comes to its end; the rest goes to the shortest ones. What these leave
/// stays unused: a short prompt is not to wait for a long one's rows in its own step.
void Replica::add_prefills(std::uint32_t lane, StepBuilder& builder, std::uint32_t budget) {
  scratch_.clear();
  std::uint64_t total = 0;
  for (const std::uint32_t slot : prefills_) {
    if (!can_prefill(sequences_[slot])) continue;
    scratch_.push_back(slot);
    total += sequences_[slot].prefill_left();
  }
  if (scratch_.empty()) return;
  std::uint32_t share = budget;
  if (total > budget) {
    if (total > sequences_[scratch_.front()].prefill_left()) share = (budget + 2) / 3;
    std::sort(scratch_.begin() + 1, scratch_.end(), [this](std::uint32_t a, std::uint32_t b) {
      const Sequence& first = sequences_[a];
      const Sequence& second = sequences_[b];
      return first.prefill_left() != second.prefill_left()
                 ? first.prefill_left() < second.prefill_left()
                 : first.request->order < second.request->order;
    });
  }
  budget -= add_chunk(lane, scratch_.front(), builder, share);
  for (std::size_t i = 1; i < scratch_.size() && budget > 0; ++i) {
    // No crumbs: what does not fit waits for the next step.
    if (budget < kMinChunk && sequences_[scratch_[i]].prefill_left() > budget) continue;
    budget -= add_chunk(lane, scratch_[i], builder, budget);
  }
}

/// Returns the rows it added.
std::uint32_t Replica::add_chunk(std::uint32_t lane, std::uint32_t slot, StepBuilder& builder,
                                 std::uint32_t budget) {
  Sequence& sequence = sequences_[slot];
  const std::uint32_t left = sequence.prefill_left();
  // Equal chunks, so that the last one is not a crumb.
  const std::uint32_t num_chunks = (left + budget - 1) / budget;
  const std::uint32_t rows = (left + num_chunks - 1) / num_chunks;
  if (rows == left && !may_join(lanes_[lane], sequence)) return 0;
  if (!builder.has_room_for(sequence)) return 0;
  if (sequence.forked && !sequence.admit_sent) {
    Fork& fork = forks_.at(sequence.group);
    fork.last_copy = last_step_ + 1;
    builder.add_copy(*fork.block, sequence.blocks[sequence.num_shared]);
  }
  builder.add_chunk(slot, sequence, rows);
  prefill_backlog_ -= rows;
  if (rows == left) {
    leave_lane(slot);
    join_lane(lane, slot);
  }
  return rows;
}

}  // namespace brigade::router
