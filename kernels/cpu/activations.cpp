// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activations.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h

#include "kernels/cpu/linear.h"
#include "kernels/cpu/vec-inl.h"

#include <algorithm>
#include <cmath>

#include "kernels/weight_format.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::HWY_NAMESPACE {
namespace {

using IntPart = hn::Vec<IntTag>;

/// Rounds one register, writes it to q and returns its values.
HWY_INLINE IntPart round_part(FloatPart x, FloatPart inverse, std::int8_t* q) {
  // Adding 1.5 * 2^23 rounds to the nearest integer, ties to even, and leaves it in the low bits.
  const FloatPart magic = hn::Set(kFloat, 12582912.0F);
  const IntPart bits = hn::BitCast(kInt, hn::Add(hn::Mul(x, inverse), magic));
  const IntPart values = hn::Sub(bits, hn::Set(kInt, 0x4b400000));
#if HWY_TARGET == HWY_SCALAR
  *q = static_cast<std::int8_t>(hn::GetLane(values));
#else
  constexpr hn::Rebind<std::int8_t, FloatTag> kBytes{};
  hn::StoreU(hn::DemoteTo(kBytes, values), kBytes, q);
#endif
  return values;
}

/// Rounds a group of 32 to q; returns its scale, and the sum of q.
HWY_INLINE float round_group(const float* x, std::int8_t* q, std::int32_t& sum) {
  const V16 a = load(x);
  const V16 b = load(x + 16);
  const float amax = reduce_max(max(absolute(a), absolute(b)));
  // Below this 127 / amax would overflow; such a group counts as zeros.
  const FloatPart inverse = hn::Set(kFloat, amax < 1e-30F ? 0.0F : 127.0F / amax);
  IntPart total = hn::Zero(kInt);
  BRIGADE_FOR_PARTS {
    total = hn::Add(total, round_part(a.part[p], inverse, q + p * kPartLanes));
    total = hn::Add(total, round_part(b.part[p], inverse, q + 16 + p * kPartLanes));
  }
  sum = hn::GetLane(hn::SumOfLanes(kInt, total));
  return amax / 127.0F;
}

/// Writes a group's 8 words `step` bytes apart.
HWY_INLINE void place_words(const std::int8_t* group, std::int64_t step, std::int8_t* to) {
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j)
    std::memcpy(to + j * step, group + 4 * j, 4);
}

/// The parts h and l of q = 16 h + l.
HWY_INLINE void split_group(const std::int8_t* q, std::int8_t* high, std::int8_t* low) {
  for (int i = 0; i < 32; ++i) {
    high[i] = static_cast<std::int8_t>((q[i] + 8) >> 4);
    low[i] = static_cast<std::int8_t>(q[i] - 16 * high[i]);
  }
}

HWY_INLINE std::int32_t sum_of_half(const std::int8_t* q) {
  std::int32_t sum = 0;
  for (int i = 0; i < 16; ++i)
    sum += q[i];
  return sum;
}

template <bool kSplit>
HWY_INLINE void quantize_row(const float* x, std::int32_t zero_point, const Int8Tiles& to,
                             std::int64_t tile_begin, std::int64_t tile_rows, std::int64_t r) {
  const std::int64_t groups = to.groups();
  const std::int64_t step = 4 * tile_rows;
  std::int8_t* q = to.q + tile_begin * to.cols + 4 * r;
  std::int8_t* q_low = kSplit ? to.q_low + tile_begin * to.cols + 4 * r : nullptr;
  float* scale = to.scale + tile_begin * groups + r;
  float* scaled_sum = to.scaled_sum + tile_begin * groups * to.halves + r;
  std::int32_t* offset = to.offset + tile_begin * groups * to.halves + r;
  for (std::int64_t g = 0; g < groups; ++g, q += 8 * step) {
    alignas(32) std::int8_t group[32];
    std::int32_t sum;
    const float group_scale = round_group(x + g * kGroupSize, group, sum);
    if constexpr (kSplit) {
      alignas(32) std::int8_t high[32];
      alignas(32) std::int8_t low[32];
      split_group(group, high, low);
      place_words(high, step, q);
      place_words(low, step, q_low);
      q_low += 8 * step;
    } else {
      place_words(group, step, q);
    }
    scale[g * tile_rows] = group_scale;
    if (to.halves == 2) {
      const std::int32_t second = sum_of_half(group + 16);
      const std::int64_t at = 2 * g * tile_rows;
      scaled_sum[at] = group_scale * static_cast<float>(sum - second);
      offset[at] = -zero_point * (sum - second);
      scaled_sum[at + tile_rows] = group_scale * static_cast<float>(second);
      offset[at + tile_rows] = -zero_point * second;
    } else {
      scaled_sum[g * tile_rows] = group_scale * static_cast<float>(sum);
      offset[g * tile_rows] = -zero_point * sum;
    }
  }
}

void quantize(const float* x, std::int64_t stride, Range rows, std::int32_t zero_point,
              const Int8Tiles& to) {
  for (std::int64_t tile = 0; tile < to.tiling.count(); ++tile) {
    const std::int64_t begin = to.tiling.begin(tile);
    const std::int64_t tile_rows = to.tiling.begin(tile + 1) - begin;
    const std::int64_t end = std::min(rows.end, begin + tile_rows);
    for (std::int64_t row = std::max(rows.begin, begin); row < end; ++row) {
      if (to.q_low == nullptr) {
        quantize_row<false>(x + row * stride, zero_point, to, begin, tile_rows, row - begin);
      } else {
        quantize_row<true>(x + row * stride, zero_point, to, begin, tile_rows, row - begin);
      }
    }
  }
}

void leftover(const float* x, std::int64_t cols, float* rest) {
  for (std::int64_t begin = 0; begin < cols; begin += kGroupSize) {
    alignas(32) std::int8_t group[32];
    std::int32_t sum;
    const float scale = round_group(x + begin, group, sum);
    for (std::int64_t i = 0; i < kGroupSize; ++i) {
      rest[begin + i] = std::fma(-scale, static_cast<float>(group[i]), x[begin + i]);
    }
  }
}

void pack_float(const float* x, std::int64_t stride, Range tiles, const FloatTiles& to) {
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const std::int64_t begin = to.tiling.begin(tile);
    const std::int64_t rows = to.tiling.begin(tile + 1) - begin;
    float* packed = to.data + begin * to.cols;
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* row = x + (begin + r) * stride;
      for (std::int64_t k = 0; k < to.cols; ++k)
        packed[k * rows + r] = row[k];
    }
  }
}

}  // namespace

void activations_table(LinearKernels& kernels) {
  kernels.quantize = &quantize;
  kernels.leftover = &leftover;
  kernels.pack_float = &pack_float;
}

}  // namespace brigade::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels {

void add_activations(CpuTarget target, LinearKernels& kernels) {
  switch (target) {
#if HWY_TARGETS & HWY_AVX3_DL
    case CpuTarget::kAvx3Dl:
      return N_AVX3_DL::activations_table(kernels);
#endif
#if HWY_TARGETS & HWY_AVX2
    case CpuTarget::kAvx2:
      return N_AVX2::activations_table(kernels);
#endif
    default:
      return HWY_NAMESPACE::activations_table(kernels);
  }
}

}  // namespace brigade::kernels
#endif  // HWY_ONCE
