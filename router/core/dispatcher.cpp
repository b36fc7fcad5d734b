// SPDX-License-Identifier: Apache-2.0
#include "router/core/dispatcher.h"

#include <algorithm>
#include <tuple>

namespace brigade::router {
namespace {

bool may_go_to(const LiveRequest& request, const PlacementTarget& target) {
  const Replica::Options& options = target.replica->options();
  if (options.model_index != request.model_index) return false;
  if (target.reserved_for && *target.reserved_for != request.id) return false;
  return target.accepts || (request.num_preemptions > 0 && request.replica == options.id);
}

/// Tokens of KV that the request will want there beyond what is free: about as much as would have
/// to be computed again, by it or by those that make room.
std::uint64_t missing_kv(const LiveRequest& request, const Replica& replica,
                         std::uint64_t num_uncached) {
  const std::uint64_t wanted = num_uncached + request.expected_output();
  const std::uint64_t free = replica.blocks().num_available() * wire::kBlockSize;
  return wanted - std::min(wanted, free);
}

struct Candidate {
  Replica* replica = nullptr;
  std::uint64_t num_uncached = 0;
  std::uint64_t busy = 0;  ///< tokens: work that is there, and KV that is not
  std::uint64_t num_in_use = 0;

  Candidate() = default;
  Candidate(Replica& at, const LiveRequest& request)
      : replica(&at),
        num_uncached(request.tokens.size() - at.cached_prefix(request)),
        busy(at.load_tokens() + missing_kv(request, at, num_uncached)),
        num_in_use(at.blocks().num_blocks() - at.blocks().num_free()) {}
  [[nodiscard]] std::tuple<std::uint64_t, std::uint64_t> rank() const {
    return {busy + num_uncached, num_in_use};
  }
};

}  // namespace

Placement choose_replica(const PlacementTargets& targets, const LiveRequest& request,
                         const HotPrefixes& hot) {
  Candidate best;
  Candidate least_busy;
  for (const auto& [id, target] : targets) {
    Replica* replica = target.replica;
    if (!may_go_to(request, target) || !replica->can_take(request)) continue;
    const Candidate candidate(*replica, request);
    if (best.replica == nullptr || candidate.rank() < best.rank()) best = candidate;
    if (least_busy.replica == nullptr || candidate.busy < least_busy.busy) least_busy = candidate;
  }
  Placement placement{.replica = best.replica, .num_uncached = best.num_uncached};
  const std::uint64_t num_cached = request.tokens.size() - best.num_uncached;
  if (best.busy == least_busy.busy || num_cached < wire::kBlockSize) return placement;
  placement.prefix = request.chain.hashes()[num_cached / wire::kBlockSize - 1];
  placement.detour = best.busy - least_busy.busy;
  if (hot.detours(*placement.prefix) >= least_busy.num_uncached - best.num_uncached) {
    placement.replica = least_busy.replica;
    placement.num_uncached = least_busy.num_uncached;
    placement.detour = 0;
  }
  return placement;
}

void note_placement(const Placement& placement, HotPrefixes& hot) {
  if (!placement.prefix) return;
  if (placement.detour == 0) {
    hot.forget(*placement.prefix);
  } else {
    hot.add_detour(*placement.prefix, placement.detour);
  }
}

std::uint64_t num_uncached(const PlacementTargets& targets, const LiveRequest& request) {
  std::uint64_t cached = 0;
  for (const auto& [id, target] : targets) {
    if (!target.accepts || target.replica->options().model_index != request.model_index) continue;
    cached = std::max<std::uint64_t>(cached, target.replica->cached_prefix(request));
  }
  return request.tokens.size() - cached;
}

WaitReason why_not_placed(const PlacementTargets& targets, const LiveRequest& request) {
  WaitReason nearest = WaitReason::kNoReplica;
  for (const auto& [id, target] : targets) {
    const bool is_kept = target.reserved_for && target.reserved_for != request.id;
    if (is_kept) nearest = std::max(nearest, WaitReason::kReserved);
    if (!may_go_to(request, target)) continue;
    const WaitReason reason = target.replica->why_not(request);
    if (reason == WaitReason::kNothing) return reason;
    nearest = std::max(nearest, reason);
  }
  return nearest;
}

std::string_view to_string(WaitReason reason) {
  switch (reason) {
    case WaitReason::kNothing:
      return "nothing";
    case WaitReason::kNoReplica:
      return "no replica";
    case WaitReason::kReserved:
      return "reserved";
    case WaitReason::kSlots:
      return "slots";
    case WaitReason::kBudget:
      return "budget";
    case WaitReason::kKv:
      return "KV";
    case WaitReason::kOrder:
      return "order";
    case WaitReason::kPriority:
      return "priority";
    case WaitReason::kBucket:
      return "bucket";
    case WaitReason::kFairness:
      return "fairness";
    case WaitReason::kPreempted:
      return "preempted";
  }
  return "?";
}

bool can_ever_be_placed(const PlacementTargets& targets, const LiveRequest& request) {
  bool any = false;
  for (const auto& [id, target] : targets) {
    if (!target.accepts || target.replica->options().model_index != request.model_index) continue;
    if (target.replica->can_ever_hold(request)) return true;
    any = true;
  }
  return !any;
}

void reserve_replica(PlacementTargets& targets, const LiveRequest& request) {
  PlacementTarget* best = nullptr;
  std::size_t num_replicas = 0;
  std::size_t num_reserved = 0;
  for (auto& [id, target] : targets) {
    if (target.replica->options().model_index != request.model_index || !target.accepts) continue;
    ++num_replicas;
    num_reserved += target.reserved_for ? 1 : 0;
    if (target.reserved_for == request.id) return;
    if (target.reserved_for || !target.replica->lacks_kv(request) ||
        !target.replica->can_ever_hold(request)) {
      continue;
    }
    if (best == nullptr ||
        target.replica->blocks().num_available() > best->replica->blocks().num_available()) {
      best = &target;
    }
  }
  if (best == nullptr || num_reserved >= std::max<std::size_t>(num_replicas / 2, 1)) return;
  best->reserved_for = request.id;
}

void release_reservation(PlacementTargets& targets, RequestId request) {
  for (auto& [id, target] : targets) {
    if (target.reserved_for == request) target.reserved_for.reset();
  }
}

}  // namespace brigade::router
