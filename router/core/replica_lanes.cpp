// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/base/check.h"
#include "router/core/replica.h"

namespace brigade::router {

void Replica::set_num_lanes(std::uint32_t count) {
  if (lanes_.size() < count) lanes_.resize(count);
  for (std::uint32_t lane = num_lanes(); lane < count; ++lane)
    lane_order_.push_back(lane);
  std::erase_if(lane_order_, [count](std::uint32_t lane) { return lane >= count; });
  for (std::uint32_t lane = count; lane < lanes_.size(); ++lane) {
    scratch_ = lanes_[lane].slots;
    for (const std::uint32_t slot : scratch_)
      move(slot, lightest_lane());
  }
  for (Sequence& sequence : sequences_) {
    if (sequence.moving_to && *sequence.moving_to >= count) sequence.moving_to = lightest_lane();
  }
}

std::uint32_t Replica::lightest_lane() const {
  return *std::min_element(lane_order_.begin(), lane_order_.end(),
                           [this](std::uint32_t a, std::uint32_t b) {
                             const std::uint64_t cost_a = lanes_[a].cost;
                             const std::uint64_t cost_b = lanes_[b].cost;
                             return cost_a != cost_b ? cost_a < cost_b : a < b;
                           });
}

/// Whether the lane has no more than its share without this one. The lightest lane always has.
bool Replica::may_join(const Lane& lane, const Sequence& sequence) const {
  return sequence.request->only_scores() ||
         lane.cost * num_lanes() <= total_cost_ - sequence.cost();
}

void Replica::join_lane(std::uint32_t lane, std::uint32_t slot) {
  lanes_[lane].slots.push_back(slot);
  lanes_[lane].cost += sequences_[slot].cost();
  sequences_[slot].lane = lane;
}

void Replica::leave_lane(std::uint32_t slot) {
  Sequence& sequence = sequences_[slot];
  std::vector<std::uint32_t>& slots = sequence.lane ? lanes_[*sequence.lane].slots : prefills_;
  slots.erase(std::find(slots.begin(), slots.end(), slot));
  if (sequence.lane) lanes_[*sequence.lane].cost -= sequence.cost();
  sequence.lane.reset();
}

/// A sequence changes lanes with nothing in flight: a step of the one lane must not wait for a
/// sample of a step of the other that was issued just before.
void Replica::move(std::uint32_t slot, std::uint32_t lane) {
  Sequence& sequence = sequences_[slot];
  if (sequence.steps_in_flight > 0) {
    sequence.moving_to = lane;
    return;
  }
  leave_lane(slot);
  join_lane(lane, slot);
}

/// Sequences end unevenly. The heaviest lane gives one to the lightest (more when far apart) where
/// that takes off as much of what is between them as the sequence costs; it costs that sequence the
/// steps it has in flight, once. Only when none is on its way, so that lanes do not swing.
void Replica::rebalance() {
  if (lane_order_.size() < 2) return;
  const std::uint32_t least = lightest_lane();
  const std::uint32_t most = *std::max_element(
      lane_order_.begin(), lane_order_.end(),
      [this](std::uint32_t a, std::uint32_t b) { return lanes_[a].cost < lanes_[b].cost; });
  const std::uint64_t difference = lanes_[most].cost - lanes_[least].cost;
  const std::vector<std::uint32_t>& slots = lanes_[most].slots;
  if (slots.size() < 2) return;
  const auto imbalance_after = [&](std::uint32_t slot) {
    const std::uint64_t moved = 2 * sequences_[slot].cost();
    return moved > difference ? moved - difference : difference - moved;
  };
  const std::uint32_t best = *std::min_element(
      slots.begin(), slots.end(),
      [&](std::uint32_t a, std::uint32_t b) { return imbalance_after(a) < imbalance_after(b); });
  const std::uint64_t cost = sequences_[best].cost();
  if (imbalance_after(best) + cost > difference) return;
  for (const std::uint32_t lane : lane_order_) {
    for (const std::uint32_t slot : lanes_[lane].slots) {
      if (sequences_[slot].moving_to) return;
    }
  }
  // Half of what would even them out, the newest ones: others may come to the lightest meanwhile.
  scratch_ = slots;
  for (std::uint64_t count = difference / (4 * cost); count > 1; --count) {
    if (scratch_.back() != best) move(scratch_.back(), least);
    scratch_.pop_back();
  }
  move(best, least);
}

void Replica::tune_lanes(const wire::StepResult& result, TimePoint now) {
  if (num_requests_ == 0) {
    if (!flight_.empty()) return;
    tuner_.reset();
    set_num_lanes(tuner_.num_lanes());
    return;
  }
  const auto num_samples =
      static_cast<std::uint32_t>(std::count(result.sampled.begin(), result.sampled.end(), 1));
  const std::uint32_t wanted = tuner_.on_step({.compute_us = result.compute_us,
                                               .wait_us = result.wait_us,
                                               .num_samples = num_samples,
                                               .ended = now},
                                              num_requests_);
  if (wanted != num_lanes()) set_num_lanes(wanted);
}

}  // namespace brigade::router
