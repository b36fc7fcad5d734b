// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/float16.h"
#include "common/base/random.h"
#include "kernels/cpu/target.h"
#include "kernels/op.h"
#include "kernels/weight_format.h"

namespace brigade::kernels {

inline constexpr double kEpsilon = 0x1p-24;  ///< of rounding to f32, relative

/// A stream of reproducible numbers.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t bits() { return random_bits(seed_, counter_++); }
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(random_uniform(seed_, counter_++));
  }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

/// A matrix with its memory; rows may be further apart than they are long.
struct OwnedMatrix {
  OwnedMatrix(std::int64_t r, std::int64_t c, std::int64_t padding = 0)
      : rows(r),
        cols(c),
        stride(c + padding),
        values(static_cast<std::size_t>(r * stride), -77.0F) {}

  [[nodiscard]] Matrix view() { return {values.data(), rows, cols, stride}; }
  [[nodiscard]] ConstMatrix view() const { return {values.data(), rows, cols, stride}; }
  [[nodiscard]] Matrix rows_from(std::int64_t begin, std::int64_t count) {
    return {values.data() + begin * stride, count, cols, stride};
  }

  std::int64_t rows;
  std::int64_t cols;
  std::int64_t stride;
  std::vector<float> values;
};

inline OwnedMatrix random_matrix(Random& random, std::int64_t rows, std::int64_t cols,
                                 float magnitude = 1.0F) {
  OwnedMatrix matrix(rows, cols);
  for (float& x : matrix.values)
    x = random.uniform(-magnitude, magnitude);
  return matrix;
}

/// Rows [begin, begin + count) of a and all of b are equal to the bit.
inline bool same_bits(const ConstMatrix& a, std::int64_t begin, const ConstMatrix& b) {
  for (std::int64_t i = 0; i < b.rows; ++i) {
    const auto bytes = static_cast<std::size_t>(b.cols) * sizeof(float);
    if (std::memcmp(a.row(begin + i), b.row(i), bytes) != 0) return false;
  }
  return true;
}

inline constexpr float kMaxScale = 0.05F;
inline constexpr float kMaxMinimum = 0.4F;

using model::TensorType;

inline constexpr TensorType kQuantizedTypes[] = {
    TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ8_0,   TensorType::kQ5_0,
    TensorType::kQ5_1, TensorType::kQ2_K, TensorType::kQ3_K,   TensorType::kQ4_K,
    TensorType::kQ5_K, TensorType::kQ6_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS,
    TensorType::kMXFP4};
inline constexpr TensorType kAllTypes[] = {
    TensorType::kQ4_0,  TensorType::kQ4_1, TensorType::kQ8_0,   TensorType::kQ5_0,
    TensorType::kQ5_1,  TensorType::kQ2_K, TensorType::kQ3_K,   TensorType::kQ4_K,
    TensorType::kQ5_K,  TensorType::kQ6_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS,
    TensorType::kMXFP4, TensorType::kF16,  TensorType::kBF16,   TensorType::kF32};

inline std::string type_name(TensorType type) {
  return std::string(model::to_string(type));
}

/// Where a type's blocks have their f16 scale and minimum (-1: none), and how large the integers
/// are that multiply them.
struct ScalePlaces {
  int scale = 0;
  int min = -1;
  float sub_scale = 1;
  float sub_min = 1;
};

inline ScalePlaces scale_places(TensorType type) {
  switch (type) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
      return {.min = 2};
    case TensorType::kQ2_K:
      return {.scale = 80, .min = 82, .sub_scale = 15, .sub_min = 15};
    case TensorType::kQ3_K:
      return {.scale = 108, .sub_scale = 32};
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {.min = 2, .sub_scale = 63, .sub_min = 63};
    case TensorType::kQ6_K:
      return {.scale = 208, .sub_scale = 128};
    case TensorType::kIQ4_XS:
      return {.sub_scale = 32};
    default:
      return {};
  }
}

/// A stored tensor over random valid blocks. Values are at most max_weight. Where blocks have more
/// columns than are wanted, all() takes the first.
struct OwnedTensor {
  OwnedTensor(Random& random, TensorType type, std::int64_t rows, std::int64_t cols)
      : wanted_cols(cols) {
    const StoredFormat& format = format_of(type);
    const std::int64_t unit = format.block_elements;
    info.name = "random";
    info.type = type;
    info.rows = rows;
    info.cols = (cols + unit - 1) / unit * unit;
    bytes.resize(static_cast<std::size_t>(rows * info.row_bytes()));
    for (std::byte& b : bytes)
      b = static_cast<std::byte>(random.bits());
    const auto block = static_cast<std::size_t>(format.block_bytes);
    for (std::size_t at = 0; at < bytes.size(); at += block)
      fill(random, type, &bytes[at]);
    info.bytes = bytes.size();
    info.source = std::make_shared<model::MemorySource>(bytes);
  }
  OwnedTensor(const OwnedTensor&) = delete;
  OwnedTensor& operator=(const OwnedTensor&) = delete;

  static void put_half(std::byte* to, float value) {
    const std::uint16_t half = f16_from_f32(value);
    std::memcpy(to, &half, sizeof(half));
  }

  static void fill(Random& random, TensorType type, std::byte* block) {
    const float value = random.uniform(-1, 1);
    const ScalePlaces places = scale_places(type);
    switch (type) {
      case TensorType::kF32:
        std::memcpy(block, &value, sizeof(value));
        break;
      case TensorType::kF16:
        put_half(block, value);
        break;
      case TensorType::kBF16:
        std::memcpy(block, reinterpret_cast<const char*>(&value) + 2, 2);
        break;
      case TensorType::kMXFP4:
        block[0] = static_cast<std::byte>(110 + random.below(14));  // at most 2^-5 a step
        break;
      default:
        put_half(block + places.scale, value * kMaxScale / places.sub_scale);
        if (places.min >= 0) {
          put_half(block + places.min, random.uniform(-kMaxMinimum, kMaxMinimum) / places.sub_min);
        }
    }
  }

  [[nodiscard]] WeightSlice all() const { return {&info, {0, info.rows}, {0, wanted_cols}}; }

  std::int64_t wanted_cols;
  std::vector<std::byte> bytes;
  model::TensorInfo info;
};

/// Bound of |scale * q| + |minimum| over a type's weights in OwnedTensor, as its form holds them.
inline double max_weight(TensorType type) {
  switch (format_of(type).form) {
    case WeightForm::kQ4:
      return 8 * kMaxScale;
    case WeightForm::kQ4Min:
    case WeightForm::kQ4K:
    case WeightForm::kQ4K16:
      return 15 * kMaxScale + kMaxMinimum;
    case WeightForm::kQ8Min:
    case WeightForm::kQ8K:
      return 31 * kMaxScale + kMaxMinimum;
    case WeightForm::kQ8:
    case WeightForm::kQ8K16:
    case WeightForm::kTable4:
      return 128 * kMaxScale;
    default:
      return 1;
  }
}

inline std::unique_ptr<Ops> cpu_ops(CpuTarget target, int threads = 1,
                                    ActivationMode activations = ActivationMode::kInt8) {
  CpuOptions options;
  options.num_threads = threads;
  options.activations = activations;
  return make_cpu_ops(options, target);
}

inline std::unique_ptr<Weight> pack(Ops& ops, std::vector<WeightSlice> slices) {
  return std::move(ops.pack(slices)).value();
}

}  // namespace brigade::kernels
