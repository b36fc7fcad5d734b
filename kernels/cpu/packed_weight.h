// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/arena.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/op.h"
#include "kernels/weight_format.h"

namespace brigade::kernels {

/// Sizes of what a quantised panel of 16 rows is made of.
struct FormLayout {
  std::int64_t super_bytes = 0;  ///< before every kSuperGroups groups: 16 f16 scales, 16 f16 minima
  std::int64_t header_bytes = 0;  ///< of a group
  std::int64_t group_bytes = 0;   ///< header and lines
};

[[nodiscard]] constexpr FormLayout form_layout(WeightForm form) {
  const FormTraits traits = form_traits(form);
  const std::int64_t values = traits.min ? 2 : 1;  // scale, minimum
  FormLayout layout;
  if (traits.super) {
    layout.super_bytes = 32 * values;
    layout.header_bytes = 16 * traits.halves * values;
  } else {
    layout.header_bytes = traits.table ? 64 : 32 * values;
  }
  layout.group_bytes = layout.header_bytes + (traits.wide ? 512 : 256);
  return layout;
}

/// Panels of rows, one after another, each a forward stream over all columns ("P16").
///
/// Quantised forms, 16 rows a panel, for each group of 32 columns one block:
///     [16 x scale] [16 x minimum] [lines of 16 rows x 4 bytes]
///     4 bits, 4 lines: byte b of row r in line j holds column 4j + b in its low half, 16 + 4j + b
///     in its high half; 8 bits, 8 lines: byte b of row r in line j holds column 4j + b
/// Scales and minima are f16 (kTable4: f32, no minimum). K forms have int8 ones, in K16 for the
/// first half of a group and then for the second, and before every 8 groups, counted as stored in
/// the file, the f16 ones that they are multiplied with. kF16, kBF16: 32 rows a panel, for each
/// column a line of 32 values. kF32: 16 rows, for each column a line of 16. Rows past the last are
/// zeros.
struct Segment {
  WeightForm form = WeightForm::kF32;
  std::int64_t first_row = 0;  ///< of the weight
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  /// K forms: groups before the second f16 scale; fewer than 8 where a slice begins inside a stored
  /// block.
  std::int64_t first_groups = kSuperGroups;
  std::int64_t panel_rows = 0;
  std::int64_t panel_bytes = 0;
  const std::int8_t* table = nullptr;  ///< kTable4: [16]
  std::byte* data = nullptr;           ///< [num_panels][panel_bytes], aligned to 64

  [[nodiscard]] std::int64_t num_panels() const { return (rows + panel_rows - 1) / panel_rows; }
  [[nodiscard]] std::int64_t bytes() const { return num_panels() * panel_bytes; }
  /// Of K forms: the f16 scales of group g, from the panel's first byte.
  [[nodiscard]] std::int64_t super_offset(std::int64_t g) const;
  /// Of a quantised form's group g, from the panel's first byte.
  [[nodiscard]] std::int64_t group_offset(std::int64_t g) const;
};

class PackedWeight final : public Weight {
 public:
  /// Slices must have passed check_slices. Neighbours of one type share a segment. Reads a few rows
  /// at a time, so that beside the result little memory is taken. kResourceExhausted without
  /// memory; an error of the slices' sources.
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
