// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/time.h"

namespace brigade::router {

/// How fast the queue empties while there is one, in tokens as they are charged: those placed over
/// the time in which there was a queue, both fading with about ten seconds of it (or 16 placements,
/// where they are rare). What is placed while nobody waits tells nothing of what the replicas can
/// do, nor does idle time; nor do a few requests that wait for the next step, for that goes faster
/// than when every slot is taken.
class DrainRate final {
 public:
  /// After each round of placements: what was placed in it, and whether a queue is left.
  void observe(std::uint64_t num_placed, std::uint64_t tokens_placed, bool waiting, TimePoint now);
  /// Seconds until so many tokens are placed; nothing until half a second and four placements have
  /// been seen.
  [[nodiscard]] std::optional<double> seconds_for(std::uint64_t tokens, TimePoint now) const;
  /// Seconds until so many requests are placed, as they were of late; nothing as above.
  [[nodiscard]] std::optional<double> seconds_for_requests(double count, TimePoint now) const;

 private:
  [[nodiscard]] double waited_s(TimePoint now) const;
  [[nodiscard]] std::optional<double> seconds_seen(TimePoint now) const;

  double tokens_ = 0;
  double placements_ = 0;
  double seconds_ = 0;
  bool waiting_ = false;
  TimePoint since_;  ///< of the last observation, when waiting
};

}  // namespace brigade::router
