// SPDX-License-Identifier: Apache-2.0
#include "router/core/drain_rate.h"

#include <doctest/doctest.h>

namespace brigade::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds(100)};

/// 100 tokens each 100 ms for so long, with requests left waiting.
TimePoint drain(DrainRate& rate, TimePoint from, Duration time) {
  for (; time > Duration::zero(); time -= milliseconds(100)) {
    from += milliseconds(100);
    rate.observe(1, 100, /*waiting=*/true, from);
  }
  return from;
}

}  // namespace

TEST_CASE("the drain rate is unknown until requests have waited and been placed") {
  DrainRate rate;
  CHECK_EQ(*rate.seconds_for(0, kStart), 0);
  CHECK_FALSE(rate.seconds_for(100, kStart).has_value());
  // A burst into idle replicas tells nothing.
  for (int i = 0; i < 100; ++i)
    rate.observe(1, 100, /*waiting=*/false, kStart + milliseconds(10) * i);
  CHECK_FALSE(rate.seconds_for(100, kStart + seconds(1)).has_value());
  rate.observe(0, 0, /*waiting=*/true, kStart + seconds(1));
  CHECK_FALSE(rate.seconds_for(100, kStart + seconds(9)).has_value());
  const TimePoint now = drain(rate, kStart + seconds(1), seconds(1));
  CHECK_EQ(*rate.seconds_for(1000, now), doctest::Approx(1.0).epsilon(0.01));
}

TEST_CASE("idle time is no part of the drain rate, and a change shows within its window") {
  DrainRate rate;
  rate.observe(0, 0, /*waiting=*/true, kStart);
  TimePoint now = drain(rate, kStart, seconds(20));
  CHECK_EQ(*rate.seconds_for(2000, now), doctest::Approx(2.0).epsilon(0.01));
  rate.observe(1, 100, /*waiting=*/false, now + milliseconds(100));
  now += seconds(1000);
  rate.observe(0, 0, /*waiting=*/true, now);
  CHECK_EQ(*rate.seconds_for(2000, now), doctest::Approx(2.0).epsilon(0.01));
  for (int i = 0; i < 400; ++i) {  // half as fast
    now += milliseconds(100);
    rate.observe(1, 50, /*waiting=*/true, now);
  }
  CHECK_EQ(*rate.seconds_for(2000, now), doctest::Approx(4.0).epsilon(0.03));
}

TEST_CASE("a stall makes the wait longer before anything is placed again") {
  DrainRate rate;
  rate.observe(0, 0, /*waiting=*/true, kStart);
  const TimePoint now = drain(rate, kStart, seconds(20));
  CHECK_GT(*rate.seconds_for(1000, now + seconds(30)), 3.0);
}

TEST_CASE("rare placements have a longer window") {
  DrainRate rate;
  rate.observe(0, 0, /*waiting=*/true, kStart);
  TimePoint now = kStart;
  for (int i = 0; i < 40; ++i) {
    now += seconds(20);
    rate.observe(1, i % 2 == 0 ? 1000 : 3000, /*waiting=*/true, now);  // 100 a second
  }
  CHECK_EQ(*rate.seconds_for(1000, now), doctest::Approx(10.0).epsilon(0.1));
}

}  // namespace brigade::router
