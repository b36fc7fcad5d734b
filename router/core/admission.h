// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/status.h"
#include "router/core/router.h"

namespace brigade::router {

/// What a new request would find, over all models but for `wait_s`.
struct QueueLoad {
  std::uint64_t requests = 0;
  std::uint64_t tokens = 0;  ///< as charged: uncached prompt and expected output
  std::uint64_t tenant_requests = 0;
  std::uint64_t tenant_tokens = 0;
  /// FairQueue::tokens_ahead() over the measured drain rate; nothing while that is not known.
  std::optional<double> wait_s;
};

/// Whether a request of `cost` tokens may join the queue: its bounds by requests and tokens, in all
/// and for one tenant; and by time,
///
///     tokens ahead of it / drain rate <= min(max_queue_delay, time to its deadline)
///
/// so that under overload what is accepted is served about as soon as below it, and nothing is
/// accepted that would expire in the queue. kResourceExhausted says which bound it is.
[[nodiscard]] Status check_queue_bounds(const RouterConfig& config, const QueueLoad& load,
                                        std::uint64_t cost, Duration to_deadline);

/// For Retry-After: when what is ahead of the request now has been placed, in whole seconds in
/// [1, 60] (openai clients do not wait longer); 5 while the rate is not known.
[[nodiscard]] std::uint32_t retry_after_s(std::optional<double> wait_s);

}  // namespace brigade::router
