// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/status.h"
#include "router/core/drain_rate.h"
#include "router/core/router.h"

namespace brigade::router {

/// Of a tenant's queue that stands (FairQueue::is_overload): who finds so many requests of the
/// tenant waiting and would itself wait for longer is refused.
struct StandingBound {
  std::uint64_t requests = 0;
  double wait_s = 0;
};

/// What a new request would find, over all models but for `wait_s` and `standing`.
struct QueueLoad {
  std::uint64_t requests = 0;
  std::uint64_t tokens = 0;  ///< as charged: uncached prompt and expected output
  std::uint64_t tenant_requests = 0;
  std::uint64_t tenant_tokens = 0;
  /// FairQueue::tokens_ahead() over the measured drain rate, or expected_wait_s(); nothing while
  /// neither is known.
  std::optional<double> wait_s;
  std::optional<StandingBound> standing;  ///< nothing: it does not stand, or the rate is not known
};

/// Whether a request of `cost` tokens may join the queue: its bounds by requests and tokens, in all
/// and for one tenant; and by time,
///
///     tokens ahead of it / drain rate <= min(max_queue_delay, time to its deadline)
///
/// and the standing bound under overload: so what is accepted is then served about as
/// soon as below it, and nothing is accepted that would expire in the queue. kResourceExhausted
/// says which bound it is.
[[nodiscard]] Status check_queue_bounds(const RouterConfig& config, const QueueLoad& load,
                                        std::uint64_t cost, Duration to_deadline);

/// Of a model's replicas that take requests.
struct Slots {
  std::uint64_t in_use = 0;
  std::uint64_t all = 0;
  std::uint64_t may_wait = 0;  ///< may_always_wait() of all
};

/// Requests that may wait for a replica of `max_seqs` slots though the queue stands.
[[nodiscard]] std::uint64_t may_always_wait(std::uint32_t max_seqs);

/// A stand-in for the drain rate while that is not known, which it is not before requests have
/// waited for a while: by then a flood would have made a long queue. As if every slot were taken by
/// a request like the new one, and those ahead of it were like it too:
///
///     tokens ahead / cost * service_s / slots
///
/// `cost`: of the new one, > 0; `service_s`: what it will take. Nothing without slots.
[[nodiscard]] std::optional<double> expected_wait_s(std::uint64_t ahead, std::uint64_t cost,
                                                    double service_s, Slots slots);

/// A queue that does not empty serves no one the sooner: it need only keep the replicas from
/// running dry. So a request may wait for as long as an eighth of what runs takes to be placed: by
/// Little's law that adds an eighth to the time that requests take. That is `service_s`, if known,
/// while the rate is not.
[[nodiscard]] std::optional<StandingBound> standing_bound(const DrainRate& rate, Slots slots,
                                                          std::optional<double> service_s,
                                                          TimePoint now);

/// For Retry-After: when what is ahead of the request now has been placed, in whole seconds in
/// [1, 60] (openai clients do not wait longer); 5 while the rate is not known.
[[nodiscard]] std::uint32_t retry_after_s(std::optional<double> wait_s);

}  // namespace brigade::router
