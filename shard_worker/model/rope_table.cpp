// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/rope_table.h"

#include <cmath>

#include "common/base/check.h"

namespace brigade::worker {

RopeTable::RopeTable(const model::ModelSpec& spec, std::int64_t max_tokens) {
  const auto half = static_cast<std::size_t>(spec.rotary_dim / 2);
  for (std::size_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(spec.rotary_dim);
    const double divisor = spec.rope_divisors.empty() ? 1.0 : spec.rope_divisors[i];
    inverse_frequencies_.push_back(std::pow(spec.rope_theta, exponent) / divisor);
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
      cos_[at] = static_cast<float>(std::cos(angle));
      sin_[at] = static_cast<float>(std::sin(angle));
      ++at;
    }
  }
  const auto rows = static_cast<std::int64_t>(positions.size());
  const auto cols = static_cast<std::int64_t>(half);
  return {.cos = {cos_.data(), rows, cols, cols}, .sin = {sin_.data(), rows, cols, cols}};
}

}  // namespace brigade::worker
