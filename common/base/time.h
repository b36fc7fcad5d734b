// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace brigade {

/// Monotonic time. Pure code never reads a clock: it is given `now` (a simulated one in tests);
/// shells read `Clock::now()`.
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = std::chrono::nanoseconds;

inline constexpr TimePoint kNever = TimePoint::max();

}  // namespace brigade
