// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace brigade::tools {

/// What happened when, in fixed memory: points of a tenth of a second, and of twice that each time
/// a run has outgrown them.
class Timeline final {
 public:
  struct Point {
    std::uint32_t started = 0;
    std::uint32_t ended = 0;    ///< in any way
    std::uint32_t refused = 0;  ///< answers that said: too much
    std::uint64_t tokens = 0;   ///< of output
  };
  static constexpr std::size_t kMaxPoints = 600;

  /// The point of a time in seconds after the start.
  Point& at(double seconds);

  [[nodiscard]] const std::vector<Point>& points() const { return points_; }
  [[nodiscard]] double width_s() const { return width_s_; }

 private:
  std::vector<Point> points_;
  double width_s_ = 0.1;
};

}  // namespace brigade::tools
