// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "kernels/cpu/target.h"
#include "kernels/float16.h"
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

inline constexpr auto kQ4_0 = static_cast<model::TensorType>(2);
inline constexpr model::TensorType kAllTypes[] = {kQ4_0,
                                                  model::TensorType::kQ4_1,
                                                  model::TensorType::kQ8_0,
                                                  model::TensorType::kF16,
                                                  model::TensorType::kBF16,
                                                  model::TensorType::kF32};
inline constexpr model::TensorType kQuantizedTypes[] = {kQ4_0, model::TensorType::kQ4_1,
                                                        model::TensorType::kQ8_0};

inline std::string type_name(model::TensorType type) {
  return "type " + std::to_string(static_cast<std::uint32_t>(type));
}

/// A stored tensor over random valid blocks. Values are at most max_stored_value.
struct OwnedTensor {
  OwnedTensor(Random& random, model::TensorType type, std::int64_t rows, std::int64_t cols) {
    const StoredFormat& format = *find_format(type);
    bytes.resize(static_cast<std::size_t>(rows * format.bytes(cols)));
    for (std::byte& b : bytes)
      b = static_cast<std::byte>(random.bits());
    const auto block = static_cast<std::size_t>(format.block_bytes);
    for (std::size_t at = 0; at < bytes.size(); at += block)
      fill(random, format.form, &bytes[at]);
    info.name = "random";
    info.type = type;
    info.rows = rows;
    info.cols = cols;
    info.data = bytes;
  }

  static void put_half(std::byte* to, float value) {
    const std::uint16_t half = f16_from_f32(value);
    std::memcpy(to, &half, sizeof(half));
  }

  static void fill(Random& random, WeightForm form, std::byte* block) {
    const float value = random.uniform(-1, 1);
    switch (form) {
      case WeightForm::kF32:
        std::memcpy(block, &value, sizeof(value));
        break;
      case WeightForm::kF16:
        put_half(block, value);
        break;
      case WeightForm::kBF16:
        std::memcpy(block, reinterpret_cast<const char*>(&value) + 2, 2);
        break;
      case WeightForm::kQ4Min:
        put_half(block + 2, random.uniform(-kMaxMinimum, kMaxMinimum));
        [[fallthrough]];
      default:
        put_half(block, value * kMaxScale);
    }
  }

  [[nodiscard]] WeightSlice all() const { return {&info, {0, info.rows}, {0, info.cols}}; }

  std::vector<std::byte> bytes;
  model::TensorInfo info;
};

/// Bound of |scale * q| + |minimum| over a form's weights in OwnedTensor.
inline double max_weight(model::TensorType type) {
  switch (find_format(type)->form) {
    case WeightForm::kQ4:
      return 8 * kMaxScale;
    case WeightForm::kQ4Min:
      return 15 * kMaxScale + kMaxMinimum;
    case WeightForm::kQ8:
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
