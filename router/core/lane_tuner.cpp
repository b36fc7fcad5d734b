// SPDX-License-Identifier: Apache-2.0
#include "router/core/lane_tuner.h"

#include <algorithm>
#include <cmath>

namespace brigade::router {
namespace {

constexpr std::uint32_t kMinWindow = 32;    ///< steps
constexpr std::uint32_t kWindowRounds = 4;  ///< steps of each lane
constexpr double kBusyEnough = 0.96;
constexpr double kNoLoss = 0.97;  ///< of tokens a second
constexpr double kBusier = 1.03;
constexpr std::uint32_t kSettleWindows = 3;  ///< sequences change lanes in them
constexpr std::uint32_t kMaxWait = 256;      ///< windows
constexpr double kEvenGaps = 1.05;
constexpr std::uint32_t kMaxStepsAhead = 32;  ///< a rank queues 64

}  // namespace

std::uint32_t LaneTuner::on_step(const Step& step, std::uint32_t num_sequences) {
  if (began_ == TimePoint::min()) {  // the first step only tells when the window begins
    began_ = step.ended;
    return num_lanes_;
  }
  compute_us_ += step.compute_us;
  wait_us_ += step.wait_us;
  num_samples_ += step.num_samples;
  const std::uint64_t step_us = std::uint64_t{step.compute_us} + step.wait_us;
  least_us_ = num_steps_ == 0 ? step_us : std::min(least_us_, step_us);
  if (++num_steps_ < std::max(kMinWindow, kWindowRounds * num_lanes_)) return num_lanes_;
  const double seconds = std::chrono::duration<double>(step.ended - began_).count();
  const auto total_us = static_cast<double>(compute_us_ + wait_us_);
  end_window({.rate = seconds > 0 ? static_cast<double>(num_samples_) / seconds : 0,
              .busy = total_us > 0 ? static_cast<double>(compute_us_) / total_us : 1,
              .gaps = least_us_ > 0 ? total_us / num_steps_ / static_cast<double>(least_us_) : 1},
             num_sequences);
  num_steps_ = 0;
  compute_us_ = wait_us_ = num_samples_ = 0;
  began_ = step.ended;
  return num_lanes_;
}

/// Whether there is something to try.
bool LaneTuner::start_try(const Window& window, std::uint32_t num_sequences) {
  if (window.busy >= kBusyEnough) return false;
  const std::uint32_t most = std::min(max_lanes_, num_sequences);
  if (num_lanes_ < most) {
    // As many as would just fill the time, were all steps as long as now.
    const auto wanted =
        static_cast<std::uint32_t>(std::lround(num_lanes_ / std::max(window.busy, 0.5)));
    num_lanes_ = std::min(most, std::max(wanted, num_lanes_ + 1));
    return true;
  }
  const std::uint32_t in_flight = std::max(num_steps_ahead_, 2 * std::min(num_lanes_, most));
  if (window.gaps < kEvenGaps || in_flight >= kMaxStepsAhead) return false;
  const double wanted = std::min(std::ceil(in_flight * window.gaps), double{kMaxStepsAhead});
  num_steps_ahead_ = static_cast<std::uint32_t>(wanted);
  return true;
}

void LaneTuner::end_window(const Window& window, std::uint32_t num_sequences) {
  switch (phase_) {
    case Phase::kLooking:
      if (windows_to_wait_ > 0) {
        --windows_to_wait_;
        return;
      }
      lanes_before_ = num_lanes_;
      ahead_before_ = num_steps_ahead_;
      before_ = window;
      if (!start_try(window, num_sequences)) return;
      phase_ = Phase::kSettling;
      windows_to_wait_ = kSettleWindows;
      return;
    case Phase::kSettling:
      if (--windows_to_wait_ == 0) phase_ = Phase::kComparing;
      return;
    case Phase::kComparing:
      phase_ = Phase::kLooking;
      if (window.rate >= kNoLoss * before_.rate && window.busy >= kBusier * before_.busy) {
        next_wait_ = 1;
        return;
      }
      num_lanes_ = lanes_before_;
      num_steps_ahead_ = ahead_before_;
      windows_to_wait_ = next_wait_;
      next_wait_ = std::min(2 * next_wait_, kMaxWait);
      return;
  }
}

void LaneTuner::reset() {
  *this = LaneTuner(num_stages_, max_lanes_);
}

}  // namespace brigade::router
