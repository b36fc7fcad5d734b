// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/rope_table.h"

#include <cmath>

#include "common/base/check.h"

namespace brigade::worker {

RopeTable::RopeTable(const model::RopeSpec& rope, std::int64_t rotary_dim, std::int64_t max_tokens)
    : magnitude_(rope.magnitude) {
  const auto half = static_cast<std::size_t>(rotary_dim / 2);
  for (std::size_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim);
    const double divisor = rope.divisors.empty() ? 1.0 : rope.divisors[i];
    inverse_frequencies_.push_back(std::pow(rope.theta, exponent) / divisor);
  }
  cos_.resize(half * static_cast<std::size_t>(max_tokens));
  sin_.resize(cos_.size());
}

kernels::RopeAngles RopeTable::compute(std::span<const std::int32_t> positions) {
  const std::size_t half = inverse_frequencies_.size();
  INVARIANT_LE(positions.size() * half, cos_.size());
  std::size_t at = 0;
  for (std::int32_t position : positions) {
    for (double frequency : inverse_frequencies_) {
      const double angle = position * frequency;
      cos_[at] = static_cast<float>(magnitude_ * std::cos(angle));
      sin_[at] = static_cast<float>(magnitude_ * std::sin(angle));
      ++at;
    }
  }
  const auto rows = static_cast<std::int64_t>(positions.size());
  const auto cols = static_cast<std::int64_t>(half);
  return {.cos = {cos_.data(), rows, cols, cols}, .sin = {sin_.data(), rows, cols, cols}};
}

}  // namespace brigade::worker
