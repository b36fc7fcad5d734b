// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/score_op.h"

#include <algorithm>
#include <cmath>

namespace brigade::kernels {
namespace {

/// More rows share a read of the weight, but their tile has to stay in L2.
constexpr std::int64_t kMaxBlockRows = 128;

/// Tiles of one row, in order.
class Join {
 public:
  void add(const LogitSum& tile) {
    sum_.finite = sum_.finite && tile.finite;
    sum_.target = std::max(sum_.target, tile.target);
    if (tile.peak > sum_.peak) {
      sum_.sum *= std::exp(static_cast<double>(sum_.peak) - tile.peak);
      sum_.peak = tile.peak;
    }
    sum_.sum += tile.sum * std::exp(static_cast<double>(tile.peak) - sum_.peak);
  }
  [[nodiscard]] const LogitSum& sum() const { return sum_; }

 private:
  LogitSum sum_;
};

}  // namespace

LogitSum ScoreOp::log_sum(const float* logits, std::int64_t size) const {
  Join row;
  for (std::int64_t first = 0; first < size; first += LinearOp::kTileCols) {
    LogitSum tile;
    kernels_.sum_exp(logits + first, std::min(LinearOp::kTileCols, size - first), tile);
    row.add(tile);
  }
  return row.sum();
}

void ScoreOp::run(const PackedWeight& weight, const ConstMatrix& x, float soft_cap,
                  std::span<const std::int32_t> targets, std::span<LogitSum> out) {
  const std::int64_t step = std::min(kMaxBlockRows, linear_.block_rows(weight));
  for (std::int64_t begin = 0; begin < x.rows; begin += step) {
    const std::int64_t rows = std::min(step, x.rows - begin);
    const auto at = static_cast<std::size_t>(begin);
    const auto count = static_cast<std::size_t>(rows);
    run_block(weight, {x.row(begin), rows, x.cols, x.stride}, soft_cap, targets.subspan(at, count),
              out.subspan(at, count));
  }
}

void ScoreOp::run_block(const PackedWeight& weight, const ConstMatrix& x, float soft_cap,
                        std::span<const std::int32_t> targets, std::span<LogitSum> out) {
  const std::size_t num_tiles =
      static_cast<std::size_t>((weight.rows() + LinearOp::kTileCols - 1) / LinearOp::kTileCols);
  tiles_.resize(out.size() * num_tiles);
  linear_.run_tiles(weight, x, [&](std::int64_t first, const Matrix& tile) {
    const auto t = static_cast<std::size_t>(first / LinearOp::kTileCols);
    for (std::size_t i = 0; i < out.size(); ++i) {
      float* logits = tile.row(static_cast<std::int64_t>(i));
      if (soft_cap > 0) kernels_.soft_cap(logits, soft_cap, tile.cols);
      LogitSum& sum = tiles_[i * num_tiles + t];
      sum = {};
      kernels_.sum_exp(logits, tile.cols, sum);
      const std::int64_t at = targets[i] - first;
      if (at >= 0 && at < tile.cols) sum.target = logits[at];
    }
  });
  for (std::size_t i = 0; i < out.size(); ++i) {
    Join row;
    for (std::size_t t = 0; t < num_tiles; ++t)
      row.add(tiles_[i * num_tiles + t]);
    out[i] = row.sum();
  }
}

}  // namespace brigade::kernels
