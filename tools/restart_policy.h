// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "common/base/time.h"

namespace brigade::tools {

/// When a process that died may be started again: at once the first time, then after a wait that
/// doubles, up to a bound; a process that lived for `kStable` starts from the beginning.
class RestartPolicy final {
 public:
  static constexpr Duration kFirstDelay = std::chrono::milliseconds(200);
  static constexpr Duration kMaxDelay = std::chrono::seconds(10);
  static constexpr Duration kStable = std::chrono::seconds(30);

  void on_start(TimePoint now) { started_ = now; }

  /// The process has died: the time at which to start the next.
  [[nodiscard]] TimePoint on_death(TimePoint now) {
    if (now - started_ >= kStable) delay_ = Duration::zero();
    const TimePoint next = now + delay_;
    delay_ = delay_ == Duration::zero() ? kFirstDelay : std::min(delay_ * 2, kMaxDelay);
    return next;
  }

 private:
  TimePoint started_{};
  Duration delay_ = Duration::zero();
};

}  // namespace brigade::tools
