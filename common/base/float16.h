// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace brigade {

/// IEEE binary16 to binary32, exact, denormals, infinities and NaN included.
[[nodiscard]] constexpr float f32_from_f16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1fU;
  const std::uint32_t mantissa = h & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

/// binary32 to binary16, nearest, ties to even; too large becomes infinity. Equal to F16C's
/// VCVTPS2PH.
[[nodiscard]] constexpr std::uint16_t f16_from_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  }
  if (magnitude >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  std::uint32_t mantissa = magnitude;
  std::uint32_t shift = 13;
  std::uint32_t bias = 112U << 10;
  if (magnitude < 0x38800000U) {  // below 2^-14: a binary16 denormal
    const std::uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return sign;
    mantissa = (magnitude & 0x7fffffU) | 0x800000U;
    shift = 126 - exponent;
    bias = 0;
  }
  const std::uint32_t half = (1U << (shift - 1)) - 1 + ((mantissa >> shift) & 1U);
  return static_cast<std::uint16_t>(sign | (((mantissa + half) >> shift) - bias));
}

[[nodiscard]] constexpr float f32_from_bf16(std::uint16_t b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

}  // namespace brigade
