// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/op.h"

namespace brigade::kernels {

/// A stack of slices with exact weights, row-major. int8 activations apply to the rows whose slice
/// was quantised.
class ReferenceWeight final : public Weight {
 public:
  ReferenceWeight(std::int64_t num_rows, std::int64_t num_cols)
      : values(static_cast<std::size_t>(num_rows * num_cols)),
        quantized(static_cast<std::size_t>(num_rows)),
        rows_(num_rows),
        cols_(num_cols) {}

  [[nodiscard]] std::int64_t rows() const override { return rows_; }
  [[nodiscard]] std::int64_t cols() const override { return cols_; }
  [[nodiscard]] std::size_t bytes() const override { return values.size() * sizeof(double); }
  [[nodiscard]] const double* row(std::int64_t i) const { return values.data() + i * cols_; }

  std::vector<double> values;   ///< [rows, cols]
  std::vector<bool> quantized;  ///< [rows]
  Rounding rounding = Rounding::kOnce;

 private:
  std::int64_t rows_;
  std::int64_t cols_;
};

/// Keys and values as [layer][slot][kv head][head_dim], rounded to f16 where the shape says so.
class ReferenceKvCache final : public KvCache {
 public:
  ReferenceKvCache(const KvShape& shape, std::int64_t num_blocks);

  [[nodiscard]] const KvShape& shape() const override { return shape_; }
  [[nodiscard]] std::int64_t num_blocks() const override { return num_blocks_; }
  [[nodiscard]] std::size_t index(std::int64_t layer, std::int64_t slot) const;

  std::vector<float> k;
  std::vector<float> v;

 private:
  KvShape shape_;
  std::int64_t num_blocks_;
};

}  // namespace brigade::kernels
