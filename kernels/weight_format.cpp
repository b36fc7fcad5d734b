// SPDX-License-Identifier: Apache-2.0
#include "kernels/weight_format.h"

#include <array>
#include <string>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace brigade::kernels {
namespace {

using model::TensorType;

constexpr std::array kFormats = {
    StoredFormat{TensorType::kF32, WeightForm::kF32, 1, 4},
    StoredFormat{TensorType::kF16, WeightForm::kF16, 1, 2},
    StoredFormat{TensorType::kBF16, WeightForm::kBF16, 1, 2},
    StoredFormat{TensorType::kQ4_0, WeightForm::kQ4, 32, 18},
    StoredFormat{TensorType::kQ4_1, WeightForm::kQ4Min, 32, 20},
    StoredFormat{TensorType::kQ8_0, WeightForm::kQ8, 32, 34},
    StoredFormat{TensorType::kQ5_0, WeightForm::kQ8, 32, 22},
    StoredFormat{TensorType::kQ5_1, WeightForm::kQ8Min, 32, 24},
    StoredFormat{TensorType::kQ2_K, WeightForm::kQ4K16, 256, 84},
    StoredFormat{TensorType::kQ3_K, WeightForm::kQ4K16, 256, 110},
    StoredFormat{TensorType::kQ4_K, WeightForm::kQ4K, 256, 144},
    StoredFormat{TensorType::kQ5_K, WeightForm::kQ8K, 256, 176},
    StoredFormat{TensorType::kQ6_K, WeightForm::kQ8K16, 256, 210},
    StoredFormat{TensorType::kIQ4_NL, WeightForm::kTable4, 32, 18},
    StoredFormat{TensorType::kIQ4_XS, WeightForm::kTable4, 256, 136},
    StoredFormat{TensorType::kMXFP4, WeightForm::kTable4, 32, 17},
};

Status check_slice(const WeightSlice& slice) {
  if (slice.tensor == nullptr) return invalid_argument("weight slice without a tensor");
  const model::TensorInfo& tensor = *slice.tensor;
  const std::string name = str_cat("tensor ", quoted(tensor.name), ": ");
  if (slice.rows.begin < 0 || slice.rows.size() <= 0 || slice.rows.end > tensor.rows) {
    return invalid_argument(
        str_cat(name, "rows [", slice.rows.begin, ", ", slice.rows.end, ") of ", tensor.rows));
  }
  const StoredFormat& format = format_of(tensor.type);
  const std::int64_t unit = format.unit();
  if (slice.cols.begin < 0 || slice.cols.size() <= 0 || slice.cols.end > tensor.cols ||
      slice.cols.begin % unit != 0 || slice.cols.end % unit != 0 ||
      tensor.cols % format.block_elements != 0) {
    return invalid_argument(str_cat(name, "columns [", slice.cols.begin, ", ", slice.cols.end,
                                    ") of ", tensor.cols, " in units of ", unit));
  }
  if (static_cast<std::int64_t>(tensor.bytes) / tensor.row_bytes() < tensor.rows) {
    return data_loss(str_cat(name, tensor.bytes, " bytes are too few for its shape"));
  }
  return {};
}

}  // namespace

const StoredFormat& format_of(TensorType type) {
  for (const StoredFormat& format : kFormats) {
    if (format.type == type) return format;
  }
  INVARIANT(false) << "no format for " << model::to_string(type);
  return kFormats[0];
}

Status check_slices(std::span<const WeightSlice> slices) {
  if (slices.empty()) return invalid_argument("a weight needs at least one slice");
  for (const WeightSlice& slice : slices) {
    RETURN_IF_ERROR(check_slice(slice));
    if (slice.cols.size() != slices[0].cols.size()) {
      return invalid_argument(str_cat("tensor ", quoted(slice.tensor->name), ": ",
                                      slice.cols.size(), " columns stacked on ",
                                      slices[0].cols.size()));
    }
  }
  return {};
}

SliceReader::SliceReader(const WeightSlice& slice) : slice_(slice) {
  const StoredFormat& format = format_of(slice.tensor->type);
  const std::int64_t first = slice.cols.begin / format.block_elements;
  const std::int64_t last = (slice.cols.end + format.block_elements - 1) / format.block_elements;
  stored_row_bytes_ = slice.tensor->row_bytes();
  first_byte_ = first * format.block_bytes;
  row_bytes_ = (last - first) * format.block_bytes;
  skipped_cols_ = slice.cols.begin - first * format.block_elements;
}

Status SliceReader::read(Range rows, std::byte* out) const {
  const std::int64_t begin = (slice_.rows.begin + rows.begin) * stored_row_bytes_ + first_byte_;
  const auto read = [&](std::int64_t from, std::int64_t size, std::byte* to) {
    return slice_.tensor->read(static_cast<std::uint64_t>(from),
                               std::span(to, static_cast<std::size_t>(size)));
  };
  if (row_bytes_ == stored_row_bytes_) return read(begin, rows.size() * row_bytes_, out);
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    RETURN_IF_ERROR(read(begin + i * stored_row_bytes_, row_bytes_, out + i * row_bytes_));
  }
  return {};
}

}  // namespace brigade::kernels
