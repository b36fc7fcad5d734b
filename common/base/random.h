// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace brigade {

/// Counter-based randomness: a pure function of (seed, counter, draw), so that a token's draw
/// depends on nothing but its request's seed and its position. SplitMix64's finaliser (Steele, Lea,
/// Flood 2014) over three mixed-in words.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter,
                                                  std::uint64_t draw = 0) {
  return mix64(mix64(mix64(seed) ^ counter) ^ draw);
}

/// Uniform in [0, 1), 53 bits.
[[nodiscard]] constexpr double random_uniform(std::uint64_t seed, std::uint64_t counter,
                                              std::uint64_t draw = 0) {
  return static_cast<double>(random_bits(seed, counter, draw) >> 11) * 0x1.0p-53;
}

}  // namespace brigade
