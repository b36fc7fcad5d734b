// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/rate_limit.h"

#include <algorithm>

namespace brigade::router {
namespace {

constexpr double kSecondsPerMinute = 60;

}  // namespace

void RateLimit::fill(TimePoint now) {
  if (!started_) {
    started_ = true;
    level_ = per_minute_;
    filled_ = now;
  }
  const double passed = std::chrono::duration<double>(now - filled_).count();
  level_ = std::min(per_minute_, level_ + passed * per_minute_ / kSecondsPerMinute);
  filled_ = std::max(filled_, now);
}

Duration RateLimit::wait(TimePoint now) {
  if (per_minute_ <= 0) return Duration::zero();
  fill(now);
  // A whole unit, so that a client which comes back in time is let in.
  if (level_ >= 1) return Duration::zero();
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>((1 - level_) / per_minute_ * kSecondsPerMinute));
}

void RateLimit::take(double units, TimePoint now) {
  if (per_minute_ <= 0) return;
  fill(now);
  level_ -= units;
}

}  // namespace brigade::router
