// SPDX-License-Identifier: Apache-2.0
#include "router/core/step_cost.h"

#include <algorithm>
#include <cmath>

namespace brigade::router {
namespace {

constexpr double kDecay = 0.99;
constexpr std::uint32_t kSolveEvery = 16;  ///< steps
constexpr double kMaxWeight = 4;

using Matrix = std::array<std::array<double, 3>, 3>;

double determinant(const Matrix& m) {
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
         m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/// Cramer's rule.
double solution(Matrix m, const std::array<double, 3>& right, std::size_t column, double det) {
  for (std::size_t row = 0; row < 3; ++row)
    m[row][column] = right[row];
  return determinant(m) / det;
}

}  // namespace

void StepCost::add(std::uint32_t decode_rows, std::uint32_t prefill_rows, std::uint32_t time_us) {
  const std::array<double, 3> x = {1, static_cast<double>(decode_rows),
                                   static_cast<double>(prefill_rows)};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j)
      products_[i][j] = kDecay * products_[i][j] + x[i] * x[j];
    times_[i] = kDecay * times_[i] + x[i] * time_us;
  }
  if (++num_steps_ % kSolveEvery == 0) solve();
}

void StepCost::solve() {
  const double det = determinant(products_);
  // Steps that were all of one kind say nothing: the rows are then multiples of one another.
  const double scale = products_[0][0] * products_[1][1] * products_[2][2];
  if (!(det > 1e-3 * scale)) return;
  const double decode_row = solution(products_, times_, 1, det);
  const double prefill_row = solution(products_, times_, 2, det);
  if (!(decode_row > 0) || !(prefill_row > 0)) return;
  decode_weight_ = std::clamp(decode_row / prefill_row, 1 / kMaxWeight, kMaxWeight);
}

}  // namespace brigade::router
