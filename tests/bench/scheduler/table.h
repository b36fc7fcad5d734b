// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace brigade::bench {

/// What a measurement is held against.
enum class Goal : std::uint8_t { kAtLeast, kAtMost, kNone };

/// A line of the table: what, value with its unit, target, and value / target.
void print_row(std::string_view what, double value, std::string_view unit = "",
               Goal goal = Goal::kNone, double target = 0);
void print_heading(std::string_view title);
/// How many rows have missed their target so far.
[[nodiscard]] int num_missed();

}  // namespace brigade::bench
