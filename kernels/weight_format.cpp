// SPDX-License-Identifier: Apache-2.0
#include "kernels/weight_format.h"

#include <array>
#include <string>

#include "kernels/float16.h"

namespace brigade::kernels {
namespace {

/// ggml's id of Q4_0, which the GGUF reader does not hand out yet.
constexpr auto kStoredQ4 = static_cast<model::TensorType>(2);

constexpr std::array kFormats = {
    StoredFormat{model::TensorType::kF32, WeightForm::kF32, 1, 4},
    StoredFormat{model::TensorType::kF16, WeightForm::kF16, 1, 2},
    StoredFormat{model::TensorType::kBF16, WeightForm::kBF16, 1, 2},
    StoredFormat{kStoredQ4, WeightForm::kQ4, 32, 18},
    StoredFormat{model::TensorType::kQ4_1, WeightForm::kQ4Min, 32, 20},
    StoredFormat{model::TensorType::kQ8_0, WeightForm::kQ8, 32, 34},
};

Status check_slice(const WeightSlice& slice) {
  if (slice.tensor == nullptr) return invalid_argument("weight slice without a tensor");
  const model::TensorInfo& tensor = *slice.tensor;
  const std::string name = "tensor " + tensor.name + ": ";
  const StoredFormat* format = find_format(tensor.type);
  if (format == nullptr) {
    return invalid_argument(name + "type " +
                            std::to_string(static_cast<std::uint32_t>(tensor.type)) +
                            " cannot be packed");
  }
  if (slice.rows.begin < 0 || slice.rows.size() <= 0 || slice.rows.end > tensor.rows) {
    return invalid_argument(name + "rows [" + std::to_string(slice.rows.begin) + ", " +
                            std::to_string(slice.rows.end) + ") of " + std::to_string(tensor.rows));
  }
  const std::int64_t block = format->block_elements;
  if (slice.cols.begin < 0 || slice.cols.size() <= 0 || slice.cols.end > tensor.cols ||
      slice.cols.begin % block != 0 || slice.cols.end % block != 0 || tensor.cols % block != 0) {
    return invalid_argument(name + "columns [" + std::to_string(slice.cols.begin) + ", " +
                            std::to_string(slice.cols.end) + ") of " + std::to_string(tensor.cols) +
                            " in blocks of " + std::to_string(block));
  }
  const auto bytes = static_cast<std::int64_t>(tensor.data.size());
  if (bytes / format->bytes(tensor.cols) < tensor.rows) {
    return data_loss(name + std::to_string(bytes) + " bytes are too few for its shape");
  }
  return {};
}

/// Both 4-bit types: element j of 32 is the low nibble of byte j, element 16 + j its high nibble.
void decode_nibbles(const std::byte* source, double scale, double offset, double* out) {
  for (int j = 0; j < 16; ++j) {
    const auto byte = std::to_integer<unsigned>(source[j]);
    out[j] = scale * (byte & 15U) + offset;
    out[16 + j] = scale * (byte >> 4U) + offset;
  }
}

void decode_block(WeightForm form, const std::byte* block, double* out) {
  const double scale = f32_from_f16(load_as<std::uint16_t>(block));
  switch (form) {
    case WeightForm::kQ4:
      return decode_nibbles(block + 2, scale, -8 * scale, out);
    case WeightForm::kQ4Min:
      return decode_nibbles(block + 4, scale, f32_from_f16(load_as<std::uint16_t>(block + 2)), out);
    default:
      for (int j = 0; j < 32; ++j)
        out[j] = scale * load_as<std::int8_t>(block + 2 + j);
  }
}

}  // namespace

const StoredFormat* find_format(model::TensorType type) {
  for (const StoredFormat& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

Status check_slices(std::span<const WeightSlice> slices) {
  if (slices.empty()) return invalid_argument("a weight needs at least one slice");
  for (const WeightSlice& slice : slices) {
    RETURN_IF_ERROR(check_slice(slice));
    if (slice.cols.size() != slices[0].cols.size()) {
      return invalid_argument("tensor " + slice.tensor->name + ": " +
                              std::to_string(slice.cols.size()) + " columns stacked on " +
                              std::to_string(slices[0].cols.size()));
    }
  }
  return {};
}

const std::byte* slice_row(const StoredFormat& format, const WeightSlice& slice, std::int64_t row) {
  return slice.tensor->data.data() + row * format.bytes(slice.tensor->cols) +
         format.bytes(slice.cols.begin);
}

void decode_row(const StoredFormat& format, const std::byte* source, std::int64_t cols,
                double* out) {
  if (is_quantized(format.form)) {
    for (std::int64_t g = 0; g < cols / kGroupSize; ++g) {
      decode_block(format.form, source + g * format.block_bytes, out + g * kGroupSize);
    }
    return;
  }
  for (std::int64_t k = 0; k < cols; ++k) {
    const std::byte* p = source + k * format.block_bytes;
    switch (format.form) {
      case WeightForm::kF16:
        out[k] = f32_from_f16(load_as<std::uint16_t>(p));
        break;
      case WeightForm::kBF16:
        out[k] = f32_from_bf16(load_as<std::uint16_t>(p));
        break;
      default:
        out[k] = load_as<float>(p);
    }
  }
}

}  // namespace brigade::kernels
