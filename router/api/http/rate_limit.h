// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/time.h"

namespace brigade::router {

/// So many units a minute: a bucket of one minute's worth that fills evenly. What a request costs
/// is known only when it has been paid, so the level may fall below zero; nothing is let in until
/// it is above again, and over time the rate holds exactly.
class RateLimit final {
 public:
  /// 0: no limit.
  explicit RateLimit(std::uint64_t per_minute) : per_minute_(static_cast<double>(per_minute)) {}

  /// How long until something may be taken; zero: now.
  [[nodiscard]] Duration wait(TimePoint now);
  void take(double units, TimePoint now);

 private:
  void fill(TimePoint now);

  double per_minute_;
  double level_ = 0;
  TimePoint filled_{};
  bool started_ = false;
};

}  // namespace brigade::router
