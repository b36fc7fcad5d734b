// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/cpu/target.h"
#include "kernels/op.h"

namespace brigade::kernels {

/// Ops on one row, of one target. Sums run over 16 virtual lanes (lane i takes elements i, i + 16,
/// ...) that are added in a fixed tree, so all targets give the same bits.
struct ElementwiseKernels {
  /// out = x / sqrt(mean(x^2) + eps) * weight; may be in place.
  void (*rms_norm)(const float* x, const float* weight, std::int64_t size, float eps, float* out);
  /// Rotates heads of head_dim by `half` angles; see Ops::rope.
  void (*rope)(float* x, std::int64_t num_heads, std::int64_t head_dim, bool adjacent,
               const float* cos, const float* sin, std::int64_t half);
  /// out = gate / (1 + e^-gate) * up
  void (*silu_mul)(const float* gate, const float* up, std::int64_t size, float* out);
  /// out = gelu(gate) * up, in the tanh form; see Activation::kGelu.
  void (*gelu_mul)(const float* gate, const float* up, std::int64_t size, float* out);
  /// x += y
  void (*add)(float* x, const float* y, std::int64_t size);
  /// x += factor * y
  void (*add_scaled)(float* x, float factor, const float* y, std::int64_t size);
  /// x *= factor
  void (*scale)(float* x, float factor, std::int64_t size);
  /// x = cap tanh(x / cap)
  void (*soft_cap)(float* x, float cap, std::int64_t size);
  /// The largest value, the sum of e^(x - peak), and whether all are finite.
  void (*sum_exp)(const float* x, std::int64_t size, LogitSum& out);
  /// Rounds to f16, nearest even.
  void (*to_f16)(const float* x, std::int64_t size, std::uint16_t* out);
};

[[nodiscard]] ElementwiseKernels elementwise_kernels(CpuTarget target);

}  // namespace brigade::kernels
