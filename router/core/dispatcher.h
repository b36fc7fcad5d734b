// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "router/core/replica.h"

namespace brigade::router {

/// A ready replica, and whether requests may be placed on it.
struct PlacementTarget {
  Replica* replica = nullptr;
  bool accepts = false;  ///< false while it drains
};

/// The replica for a request: of those of its model that accept and can take it now, the one with
/// the least work in tokens; then the one with more free KV; then the lower id. Null when it must
/// wait: centrally, so that whichever replica has room first takes it. A replica that drains takes
/// back what it preempted: that is among the requests it is to finish.
[[nodiscard]] Replica* choose_replica(const std::map<ReplicaId, PlacementTarget>& targets,
                                      const LiveRequest& request);

/// Whether any replica of its model that accepts has enough KV for the request alone; true when
/// there is none to ask.
[[nodiscard]] bool can_ever_be_placed(const std::map<ReplicaId, PlacementTarget>& targets,
                                      const LiveRequest& request);

/// How fast the queue empties, in tokens a second over about the last ten seconds, for Retry-After.
class DrainRate final {
 public:
  void add(std::uint64_t tokens, TimePoint now);
  /// Seconds until `queued_tokens` are placed at this rate, in [1, 60]: openai clients do not wait
  /// longer.
  [[nodiscard]] std::uint32_t retry_after_s(std::uint64_t queued_tokens, TimePoint now) const;

 private:
  [[nodiscard]] double decayed(TimePoint now) const;
  double tokens_ = 0;
  TimePoint since_ = TimePoint::min();
};

}  // namespace brigade::router
