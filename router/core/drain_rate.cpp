// SPDX-License-Identifier: Apache-2.0
#include "router/core/drain_rate.h"

#include <algorithm>
#include <cmath>

namespace brigade::router {
namespace {

constexpr double kWindowS = 10;
constexpr double kWindowPlacements = 16;
constexpr double kMinSeconds = 0.5;
constexpr double kMinPlacements = 4;

}  // namespace

double DrainRate::waited_s(TimePoint now) const {
  return waiting_ && now > since_ ? std::chrono::duration<double>(now - since_).count() : 0;
}

void DrainRate::observe(std::uint64_t num_placed, std::uint64_t tokens_placed, bool waiting,
                        TimePoint now) {
  // A round that nothing came of is not a moment of its own: the next one covers its time.
  if (waiting_ && waiting && num_placed == 0) return;
  if (waiting_) {
    const double waited = waited_s(now);
    const double interval = placements_ > 0 ? seconds_ / placements_ : 0;
    const double keep = std::exp(-waited / std::max(kWindowS, kWindowPlacements * interval));
    tokens_ = tokens_ * keep + static_cast<double>(tokens_placed);
    placements_ = placements_ * keep + static_cast<double>(num_placed);
    seconds_ = seconds_ * keep + waited;
  }
  waiting_ = waiting;
  since_ = now;
}

std::optional<double> DrainRate::seconds_seen(TimePoint now) const {
  // Time without a placement counts as soon as it is longer than usual.
  const double interval = placements_ > 0 ? seconds_ / placements_ : 0;
  const double seconds = seconds_ + std::max(0.0, waited_s(now) - interval);
  if (seconds < kMinSeconds || placements_ < kMinPlacements) return std::nullopt;
  return seconds;
}

std::optional<double> DrainRate::seconds_for(std::uint64_t tokens, TimePoint now) const {
  if (tokens == 0) return 0;
  const std::optional<double> seconds = seconds_seen(now);
  if (!seconds) return std::nullopt;
  return static_cast<double>(tokens) * *seconds / tokens_;
}

std::optional<double> DrainRate::seconds_for_requests(double count, TimePoint now) const {
  const std::optional<double> seconds = seconds_seen(now);
  if (!seconds) return std::nullopt;
  return count * *seconds / placements_;
}

}  // namespace brigade::router
