// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "common/base/time.h"

namespace brigade::router {

/// Tells a burst, which a queue is there for, from an overload, which a queue only makes everyone
/// wait for. The queue is overloaded once it has been as long as it may be, however that came: who
/// asks again only when answered never gets there. It is again a queue for bursts after a calm: its
/// credit, none at first, grows while no one waits, three times as fast as it shrinks while someone
/// does, and must come to `calm`. One lucky moment is not enough, and a quarter of the time is.
class BurstCredit final {
 public:
  explicit BurstCredit(Duration calm) : calm_(calm) {}

  /// A request has been refused because the queue was as long as it may be.
  void exhaust(TimePoint now) {
    observe(waiting_, now);
    overloaded_ = true;
    credit_ = Duration::zero();
  }
  /// When requests begin or cease to wait.
  void observe(bool waiting, TimePoint now) {
    overloaded_ = is_overload(now);
    credit_ = credit(now);
    waiting_ = waiting;
    since_ = now;
  }
  [[nodiscard]] bool is_overload(TimePoint now) const { return overloaded_ && credit(now) < calm_; }

 private:
  static constexpr int kRecovery = 3;

  [[nodiscard]] Duration credit(TimePoint now) const {
    const Duration passed = std::max(now - since_, Duration::zero());
    return waiting_ ? credit_ - std::min(passed, credit_)
                    : credit_ + std::min(kRecovery * passed, calm_ - credit_);
  }

  Duration calm_;
  Duration credit_ = Duration::zero();
  bool overloaded_ = false;
  bool waiting_ = false;
  TimePoint since_{};  ///< of the last observation
};

}  // namespace brigade::router
