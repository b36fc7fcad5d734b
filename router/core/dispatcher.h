// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "router/core/hot_prefixes.h"
#include "router/core/replica.h"

namespace brigade::router {

/// A ready replica, and whether requests may be placed on it.
struct PlacementTarget {
  Replica* replica = nullptr;
  bool accepts = false;  ///< false while it drains
  /// No other request is placed here until this one is.
  std::optional<RequestId> reserved_for = std::nullopt;
};
using PlacementTargets = std::map<ReplicaId, PlacementTarget>;

struct Placement {
  Replica* replica = nullptr;      ///< null: it must wait
  std::uint64_t num_uncached = 0;  ///< tokens of the request that must be computed there
  /// Where a cached prefix decided, or would have: its last block, for note_placement().
  std::optional<BlockHash> prefix = std::nullopt;
  std::uint64_t detour = 0;  ///< HotPrefixes; 0: the prefix is taken to another replica
};

/// The replica for a request: of those of its model that accept and can take it now, the one with
/// the least
///
///     work placed on it + tokens of the request that it has not cached + KV that it lacks
///
/// all in tokens, as they are at this moment: each placement counts for the next. So a session
/// finds the replica that has its past, a cold prompt the least busy one, and a prefix that many
/// want is learnt by a second replica as soon as the first has more to do by the prefix's length,
/// or has had so for long enough (`hot`): then the least busy one takes it whatever it lacks. Of
/// equals the one with more KV blocks that nothing is cached in, then the lower id. When none
/// can take it, it waits centrally: whichever has room first takes it. A replica that drains takes
/// back what it preempted: that is among the requests it is to finish.
[[nodiscard]] Placement choose_replica(const PlacementTargets& targets, const LiveRequest& request,
                                       const HotPrefixes& hot);
/// The request goes there.
void note_placement(const Placement& placement, HotPrefixes& hot);

/// Tokens of the request that no replica of its model has cached.
[[nodiscard]] std::uint64_t num_uncached(const PlacementTargets& targets,
                                         const LiveRequest& request);

/// What keeps choose_replica() from one: the last that the nearest replica lacks.
[[nodiscard]] WaitReason why_not_placed(const PlacementTargets& targets,
                                        const LiveRequest& request);

/// Whether any replica of its model that accepts has enough KV for the request alone; true when
/// there is none to ask.
[[nodiscard]] bool can_ever_be_placed(const PlacementTargets& targets, const LiveRequest& request);

/// Keeps a replica for a request that finds no KV anywhere, so that smaller ones do not pass it for
/// ever: the one with the most free KV of those that lack it but can hold it alone. At most half of
/// the model's replicas (but one) are kept at a time: the others serve on. Slots and prefill budget
/// come to all in turn: nothing is kept for want of them.
void reserve_replica(PlacementTargets& targets, const LiveRequest& request);
/// The request was placed or has ended.
void release_reservation(PlacementTargets& targets, RequestId request);

}  // namespace brigade::router
