// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace brigade::router {

/// What a step of a replica takes, learnt from what its last stage reports:
///
///     time = base + decode_row * decode rows + prefill_row * prefill rows
///
/// by least squares over about the last hundred steps. Steps take equal times when their loads are
/// equal: a load is in prefill rows, a decode row counting as decode_row / prefill_row of one.
class StepCost final {
 public:
  void add(std::uint32_t decode_rows, std::uint32_t prefill_rows, std::uint32_t time_us);

  /// Prefill rows that take the time of one decode row, in [1/4, 4]; 1 until steps of different
  /// kinds have told.
  [[nodiscard]] double decode_weight() const { return decode_weight_; }

 private:
  void solve();

  /// Decayed sums of products of (1, decode rows, prefill rows), and of these with the time.
  std::array<std::array<double, 3>, 3> products_ = {};
  std::array<double, 3> times_ = {};
  std::uint32_t num_steps_ = 0;
  double decode_weight_ = 1;
};

}  // namespace brigade::router
