// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/status.h"

namespace brigade::tools {

/// How long prompts or answers are, in tokens:
///
///     128                          always so long
///     64..512                      uniform, both ends included
///     normal:MEAN,DEVIATION        rounded; below 1 becomes 1
///     lognormal:MEAN,DEVIATION     of the lengths themselves, not of their logarithms
///     normal:256,64,32..1024       the last two also within bounds
///
/// A draw depends on seed and counter alone.
class Lengths final {
 public:
  static constexpr std::uint32_t kLongest = 1U << 20;

  static Result<Lengths> parse(std::string_view text);
  [[nodiscard]] static Lengths always(std::uint32_t length);

  [[nodiscard]] std::uint32_t draw(std::uint64_t seed, std::uint64_t counter) const;

 private:
  enum class Kind : std::uint8_t { kUniform, kNormal, kLognormal };

  Kind kind_ = Kind::kUniform;
  std::uint32_t min_ = 1;
  std::uint32_t max_ = 1;
  double mean_ = 0;  ///< of the logarithm with kLognormal
  double deviation_ = 0;
};

}  // namespace brigade::tools
