// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/linear_op.h"
#include "kernels/cpu/packed_weight.h"
#include "kernels/op.h"

namespace brigade::kernels {

/// Ops::log_sum and Ops::score: a row is summed up in tiles of LinearOp::kTileCols logits, and the
/// tiles' sums are joined in order. So both give the same bits, whatever thread took a tile.
class ScoreOp final {
 public:
  ScoreOp(const ElementwiseKernels& kernels, LinearOp& linear)
      : kernels_(kernels), linear_(linear) {}

  [[nodiscard]] LogitSum log_sum(const float* logits, std::int64_t size) const;

  void run(const PackedWeight& weight, const ConstMatrix& x, float soft_cap,
           std::span<const std::int32_t> targets, std::span<LogitSum> out);

 private:
  void run_block(const PackedWeight& weight, const ConstMatrix& x, float soft_cap,
                 std::span<const std::int32_t> targets, std::span<LogitSum> out);

  ElementwiseKernels kernels_;
  LinearOp& linear_;
  std::vector<LogitSum> tiles_;  ///< [rows of a block][tiles of a row]
};

}  // namespace brigade::kernels
