// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/arena.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/op.h"

namespace brigade::kernels {

/// Panels of rows, one after another, each a forward stream over all columns ("P16").
///
/// Quantised forms, 16 rows a panel, for each group of 32 columns one block:
///     [16 x f16 scale] [16 x f16 minimum, kQ4Min only] [lines of 16 rows x 4 bytes]
///     4 bits, 4 lines: byte b of row r in line j holds column 4j + b in its low half, 16 + 4j + b
///     in its high half 8 bits, 8 lines: byte b of row r in line j holds column 4j + b, plus 128
/// kF16, kBF16: 32 rows a panel, for each column a line of 32 values. kF32: 16 rows, for each
/// column a line of 16. Rows past the last are zeros.
struct Segment {
  WeightForm form = WeightForm::kF32;
  std::int64_t first_row = 0;  ///< of the weight
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t panel_rows = 0;
  std::int64_t panel_bytes = 0;
  std::byte* data = nullptr;  ///< [num_panels][panel_bytes], aligned to 64

  [[nodiscard]] std::int64_t num_panels() const { return (rows + panel_rows - 1) / panel_rows; }
  [[nodiscard]] std::int64_t bytes() const { return num_panels() * panel_bytes; }
};

/// Bytes of a quantised form's block: 16 rows, 32 columns.
[[nodiscard]] std::int64_t quantized_block_bytes(WeightForm form);

class PackedWeight final : public Weight {
 public:
  /// Slices must have passed check_slices. Neighbours of one form share a segment.
  /// kResourceExhausted without memory.
  static Result<std::unique_ptr<Weight>> pack(std::span<const WeightSlice> slices,
                                              Rounding rounding, Arena& arena, ThreadPool& pool);

  [[nodiscard]] std::int64_t rows() const override { return rows_; }
  [[nodiscard]] std::int64_t cols() const override { return cols_; }
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] Rounding rounding() const { return rounding_; }

  /// Writes the exact weights of a row, rounded to f32 once, to out: [cols].
  void unpack_row(std::int64_t row, float* out) const;

 private:
  PackedWeight() = default;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  Rounding rounding_ = Rounding::kOnce;
  std::vector<Segment> segments_;
  std::shared_ptr<Mapping> memory_;
};

}  // namespace brigade::kernels
