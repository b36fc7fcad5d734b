// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace brigade::tools {

/// When requests of an open loop are due: a Poisson process of groups. `rate` requests a second on
/// average, `burst` of them at a time.
class Arrivals final {
 public:
  Arrivals(double rate, std::uint32_t burst, std::uint64_t seed)
      : group_rate_(rate / burst), burst_(burst), seed_(seed) {}

  /// Seconds from the start to the next request; never falling. The first group comes at 0.
  [[nodiscard]] double next();

 private:
  const double group_rate_;
  const std::uint32_t burst_;
  const std::uint64_t seed_;
  std::uint64_t count_ = 0;
  double at_s_ = 0;
};

}  // namespace brigade::tools
