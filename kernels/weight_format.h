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

/// A stored type that the kernels can pack: how its blocks lie in a file (ggml's layouts, see
/// decode_row), and the form they are packed into.
struct StoredFormat {
  model::TensorType type;
  WeightForm form;
  std::int64_t block_elements;
  std::int64_t block_bytes;

  [[nodiscard]] std::int64_t bytes(std::int64_t elements) const {
    return elements / block_elements * block_bytes;
  }
};

/// The format of a stored type, or nullptr when it cannot be packed.
[[nodiscard]] const StoredFormat* find_format(model::TensorType type);

[[nodiscard]] constexpr bool is_quantized(WeightForm form) {
  return form == WeightForm::kQ4 || form == WeightForm::kQ4Min || form == WeightForm::kQ8;
}

/// What is subtracted from a stored unsigned weight before it is scaled: 8 for Q4_0; 8-bit weights
/// are packed with 128 added.
[[nodiscard]] constexpr std::int32_t zero_point(WeightForm form) {
  if (form == WeightForm::kQ4) return 8;
  return form == WeightForm::kQ8 ? 128 : 0;
}

/// Refuses slices that reach outside their tensor, cut a block, have types no kernel knows, or
/// differ in columns.
[[nodiscard]] Status check_slices(std::span<const WeightSlice> slices);

/// First byte of a row of the slice's tensor, at the slice's first column.
[[nodiscard]] const std::byte* slice_row(const StoredFormat& format, const WeightSlice& slice,
                                         std::int64_t row);

/// Exact values of `cols` stored elements: every type's value has fewer than 53 significant bits.
void decode_row(const StoredFormat& format, const std::byte* source, std::int64_t cols,
                double* out);

template <typename T>
[[nodiscard]] T load_as(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

}  // namespace brigade::kernels
