// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/base/partition.h"
#include "common/base/status.h"
#include "common/model/gguf.h"
#include "kernels/op.h"

namespace brigade::kernels {

/// Weights share a scale in groups of 32; int8 activations too.
inline constexpr std::int64_t kGroupSize = 32;
/// Groups that share the f16 scale of a K form.
inline constexpr std::int64_t kSuperGroups = 8;

/// What the kernels of a quantised form differ in.
struct FormTraits {
  bool wide = false;   ///< codes of 8 bits, not 4
  bool min = false;    ///< a minimum beside the scale
  bool super = false;  ///< K forms: scales in two steps
  int halves = 1;      ///< 2: scales for 16 weights each
  bool table = false;  ///< the code picks from a table; f32 scales
  int zero_point = 0;
};

[[nodiscard]] constexpr FormTraits form_traits(WeightForm form) {
  switch (form) {
    case WeightForm::kQ4:
      return {.zero_point = 8};
    case WeightForm::kQ4Min:
      return {.min = true};
    case WeightForm::kQ8:
      return {.wide = true, .zero_point = 128};
    case WeightForm::kQ8Min:
      return {.wide = true, .min = true};
    case WeightForm::kQ4K:
      return {.min = true, .super = true};
    case WeightForm::kQ8K:
      return {.wide = true, .min = true, .super = true};
    case WeightForm::kQ4K16:
      return {.min = true, .super = true, .halves = 2};
    case WeightForm::kQ8K16:
      return {.wide = true, .super = true, .halves = 2, .zero_point = 128};
    case WeightForm::kTable4:
      return {.table = true, .zero_point = 128};
    default:
      return {};
  }
}

[[nodiscard]] constexpr bool is_quantized(WeightForm form) {
  return static_cast<int>(form) < kNumQuantizedForms;
}

/// What is subtracted from a code before it is scaled. The integers of a table have 128 added.
[[nodiscard]] constexpr std::int32_t zero_point(WeightForm form) {
  return form_traits(form).zero_point;
}

/// A stored type that the kernels can pack: how its blocks lie in a file (ggml's layouts), and the
/// form they are packed into.
struct StoredFormat {
  model::TensorType type;
  WeightForm form;
  std::int64_t block_elements;
  std::int64_t block_bytes;

  /// Columns that a slice is cut at.
  [[nodiscard]] std::int64_t unit() const { return block_elements == 1 ? 1 : kGroupSize; }
};

/// The format of a stored type.
[[nodiscard]] const StoredFormat& format_of(model::TensorType type);

/// 32 weights of a quantised type in the terms of its form.
struct StoredGroup {
  std::uint8_t codes[kGroupSize];
  std::uint16_t scale = 0;   ///< f16; of K forms before sub_scale
  std::uint16_t min = 0;     ///< f16, to be added; of K forms before sub_min
  std::int8_t sub_scale[2];  ///< K forms: of each half
  std::int8_t sub_min[2];    ///< K forms with a minimum
  float wide_scale = 0;      ///< kTable4
};

/// Groups of a stored row from `first` on, given the row's first block.
void load_groups(const StoredFormat& format, const std::byte* row, std::int64_t first,
                 std::span<StoredGroup> groups);

/// The 16 integers that the codes of a table type pick.
[[nodiscard]] const std::int8_t* code_table(model::TensorType type);

/// Refuses slices that reach outside their tensor, cut a group, or differ in columns.
[[nodiscard]] Status check_slices(std::span<const WeightSlice> slices);

/// The stored blocks that hold a slice's columns, of a run of its rows.
class SliceReader final {
 public:
  explicit SliceReader(const WeightSlice& slice);

  /// Of a row.
  [[nodiscard]] std::int64_t row_bytes() const { return row_bytes_; }
  /// Columns of the first block that are before the slice's.
  [[nodiscard]] std::int64_t skipped_cols() const { return skipped_cols_; }
  /// Reads rows [rows.begin, rows.end), counted from the slice's first, to out: [rows][row_bytes].
  [[nodiscard]] Status read(Range rows, std::byte* out) const;

 private:
  const WeightSlice& slice_;
  std::int64_t stored_row_bytes_;
  std::int64_t first_byte_;
  std::int64_t row_bytes_;
  std::int64_t skipped_cols_;
};

/// Exact values of `cols` stored elements from `skip` on, given the block that holds the first:
/// every type's value has fewer than 53 significant bits.
void decode_row(const StoredFormat& format, const std::byte* row, std::int64_t skip,
                std::int64_t cols, double* out);

template <typename T>
[[nodiscard]] T load_as(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

}  // namespace brigade::kernels
