// SPDX-License-Identifier: Apache-2.0
#include "router/core/lane_tuner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

namespace brigade::router {
namespace {

using std::chrono::microseconds;

/// Steps of a replica that gives `rate(lanes)` samples a millisecond and computes `busy_of(lanes)`
/// of the time.
void run(LaneTuner& tuner, int num_steps, const std::function<double(std::uint32_t)>& busy_of,
         std::uint32_t num_sequences, const std::function<std::uint32_t(std::uint32_t)>& rate) {
  static TimePoint now{std::chrono::seconds(1)};
  for (int i = 0; i < num_steps; ++i) {
    const double busy = busy_of(tuner.num_lanes());
    now += microseconds(1000);
    tuner.on_step({.compute_us = static_cast<std::uint32_t>(1000 * busy),
                   .wait_us = static_cast<std::uint32_t>(1000 * (1 - busy)),
                   .num_samples = rate(tuner.num_lanes()),
                   .ended = now},
                  num_sequences);
  }
}

}  // namespace

TEST_CASE("busy stages keep one lane each") {
  LaneTuner tuner(4, 32);
  run(
      tuner, 5000, [](std::uint32_t) { return 0.99; }, 100,
      [](std::uint32_t lanes) { return 10 * lanes; });
  CHECK_EQ(tuner.num_lanes(), 4);
}

TEST_CASE("lanes are added while stages wait and become busier by it") {
  LaneTuner tuner(2, 32);
  run(
      tuner, 5000, [](std::uint32_t lanes) { return std::min(0.1 * lanes, 0.98); }, 100,
      [](std::uint32_t) { return 10U; });
  CHECK_GE(tuner.num_lanes(), 10);
  CHECK_LT(tuner.num_lanes(), 20);
  tuner.reset();
  CHECK_EQ(tuner.num_lanes(), 2);
}

TEST_CASE("lanes that cost tokens are taken back") {
  LaneTuner tuner(2, 32);
  run(
      tuner, 5000, [](std::uint32_t lanes) { return std::min(0.1 * lanes, 0.98); }, 100,
      [](std::uint32_t lanes) { return 1000 / lanes; });
  CHECK_LE(tuner.num_lanes(), 3);
}

TEST_CASE("a try that gains nothing is taken back, and seldom made again") {
  LaneTuner tuner(2, 32);
  int tries = 0;
  std::uint32_t before = 2;
  for (int i = 0; i < 20000; ++i) {
    run(
        tuner, 1, [](std::uint32_t) { return 0.5; }, 100, [](std::uint32_t) { return 10U; });
    tries += tuner.num_lanes() > before ? 1 : 0;
    before = tuner.num_lanes();
    REQUIRE_LE(tuner.num_lanes(), 4);
  }
  CHECK_GE(tries, 3);
  CHECK_LE(tries, 12);
}

TEST_CASE("there are never more lanes than sequences") {
  LaneTuner tuner(2, 32);
  run(
      tuner, 5000, [](std::uint32_t lanes) { return 0.1 * lanes; }, 3,
      [](std::uint32_t lanes) { return 10 * lanes; });
  CHECK_EQ(tuner.num_lanes(), 3);
}

TEST_CASE("with one sequence steps are put ahead until they come without gaps") {
  // A pass of two stages takes 2 ms, the way to the router and back 10 ms: of the steps in flight
  // the first comes 12 ms after the last one before, the others 2 ms after each other.
  LaneTuner tuner(2, 32);
  TimePoint now{std::chrono::seconds(1)};
  std::uint32_t in_bunch = 0;
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t in_flight = std::max(2U, tuner.num_steps_ahead());
    in_bunch = in_bunch + 1 >= in_flight ? 0 : in_bunch + 1;
    const std::uint32_t gap_us =
        in_bunch == 0 ? std::max(12'000 - 2000 * (in_flight - 1), 2000U) : 2000;
    now += microseconds(gap_us);
    tuner.on_step({.compute_us = 1000, .wait_us = gap_us - 1000, .num_samples = 1, .ended = now},
                  1);
  }
  CHECK_EQ(tuner.num_lanes(), 2);
  CHECK_EQ(tuner.num_steps_ahead(), 6);
  tuner.reset();
  CHECK_EQ(tuner.num_steps_ahead(), 0);
}

TEST_CASE("without gaps no steps are put ahead, and steps ahead that gain nothing are taken back") {
  LaneTuner even(2, 32);
  LaneTuner uneven(2, 32);
  TimePoint now{std::chrono::seconds(1)};
  std::uint32_t num_tries = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    now += microseconds(2000);
    const LaneTuner::Step step{.compute_us = 1000, .wait_us = 1000, .num_samples = 1, .ended = now};
    even.on_step(step, 1);
    LaneTuner::Step noisy = step;
    noisy.wait_us += i % 2 == 0 ? 500 : 0;
    const std::uint32_t before = uneven.num_steps_ahead();
    uneven.on_step(noisy, 1);
    num_tries += uneven.num_steps_ahead() > before ? 1 : 0;
    CHECK_LE(uneven.num_steps_ahead(), 3);
  }
  CHECK_EQ(even.num_steps_ahead(), 0);
  CHECK_GE(num_tries, 3);
  CHECK_LE(num_tries, 12);
}

}  // namespace brigade::router
