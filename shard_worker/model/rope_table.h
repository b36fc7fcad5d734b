// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/model/spec.h"
#include "kernels/op.h"

namespace brigade::worker {

/// cos and sin of position * inverse frequency for the rows of one step, computed once for all
/// layers and heads. Angles are kept in double precision up to the cosine: at position 100,000 a
/// float angle is off by 0.004.
class RopeTable final {
 public:
  RopeTable(const model::RopeSpec& rope, std::int64_t rotary_dim, std::int64_t max_tokens);

  /// Valid until the next call. positions: [num_tokens], at most max_tokens.
  [[nodiscard]] kernels::RopeAngles compute(std::span<const std::int32_t> positions);

 private:
  /// theta^(-2i / rotary_dim) / divisors[i] (RoFormer, arXiv 2104.09864). [rotary_dim / 2]
  std::vector<double> inverse_frequencies_;
  double magnitude_;
  std::vector<float> cos_;  ///< [max_tokens, rotary_dim / 2]
  std::vector<float> sin_;
};

}  // namespace brigade::worker
