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

}  // namespace

std::uint32_t LaneTuner::on_step(const Step& step, std::uint32_t num_sequences) {
  if (began_ == TimePoint::min()) {  // the first step only tells when the window begins
    began_ = step.ended;
    return num_lanes_;
  }
  compute_us_ += step.compute_us;
  wait_us_ += step.wait_us;
  num_samples_ += step.num_samples;
  if (++num_steps_ < std::max(kMinWindow, kWindowRounds * num_lanes_)) return num_lanes_;
  const double seconds = std::chrono::duration<double>(step.ended - began_).count();
  const auto total_us = static_cast<double>(compute_us_ + wait_us_);
  end_window(seconds > 0 ? static_cast<double>(num_samples_) / seconds : 0,
             total_us > 0 ? static_cast<double>(compute_us_) / total_us : 1, num_sequences);
  num_steps_ = 0;
  compute_us_ = wait_us_ = num_samples_ = 0;
  began_ = step.ended;
  return num_lanes_;
}

void LaneTuner::end_window(double rate, double busy, std::uint32_t num_sequences) {
  switch (phase_) {
    case Phase::kLooking: {
      if (windows_to_wait_ > 0) {
        --windows_to_wait_;
        return;
      }
      const std::uint32_t most = std::min(max_lanes_, num_sequences);
      if (busy >= kBusyEnough || num_lanes_ >= most) return;
      lanes_before_ = num_lanes_;
      rate_before_ = rate;
      busy_before_ = busy;
      // As many as would just fill the time, were all steps as long as now.
      const auto wanted = static_cast<std::uint32_t>(std::lround(num_lanes_ / std::max(busy, 0.5)));
      num_lanes_ = std::min(most, std::max(wanted, num_lanes_ + 1));
      phase_ = Phase::kSettling;
      windows_to_wait_ = kSettleWindows;
      return;
    }
    case Phase::kSettling:
      if (--windows_to_wait_ == 0) phase_ = Phase::kComparing;
      return;
    case Phase::kComparing:
      phase_ = Phase::kLooking;
      if (rate >= kNoLoss * rate_before_ && busy >= kBusier * busy_before_) {
        next_wait_ = 1;
        return;
      }
      num_lanes_ = lanes_before_;
      windows_to_wait_ = next_wait_;
      next_wait_ = std::min(2 * next_wait_, kMaxWait);
      return;
  }
}

void LaneTuner::reset() {
  *this = LaneTuner(num_stages_, max_lanes_);
}

}  // namespace brigade::router
