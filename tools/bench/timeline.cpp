// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/timeline.h"

#include <algorithm>

namespace brigade::tools {

Timeline::Point& Timeline::at(double seconds) {
  seconds = std::max(seconds, 0.0);
  while (seconds / width_s_ >= static_cast<double>(kMaxPoints)) {
    width_s_ *= 2;
    const std::size_t half = (points_.size() + 1) / 2;
    for (std::size_t i = 0; i < half; ++i) {
      Point sum = points_[2 * i];
      if (2 * i + 1 < points_.size()) {
        const Point& other = points_[2 * i + 1];
        sum.started += other.started;
        sum.ended += other.ended;
        sum.refused += other.refused;
        sum.tokens += other.tokens;
      }
      points_[i] = sum;
    }
    points_.resize(half);
  }
  const auto index = static_cast<std::size_t>(seconds / width_s_);
  if (index >= points_.size()) points_.resize(index + 1);
  return points_[index];
}

}  // namespace brigade::tools
