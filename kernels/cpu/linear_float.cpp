// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_float.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h

#include "kernels/cpu/linear.h"
#include "kernels/cpu/vec-inl.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"
#include "kernels/weight_format.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::HWY_NAMESPACE {
namespace {

// Registers allow 12 sums of 16 lanes in AVX2's sixteen, 24 in AVX-512's 32.
#if HWY_TARGET == HWY_AVX3_DL
constexpr int kFloatTileRows = 12;
constexpr int kMaxSums = 24;
#elif HWY_TARGET == HWY_SCALAR
constexpr int kFloatTileRows = 1;
constexpr int kMaxSums = 1;
#else
constexpr int kFloatTileRows = 6;
constexpr int kMaxSums = 6;
#endif

template <WeightForm form>
HWY_INLINE V16 load_weights(const std::byte* from) {
  if constexpr (form == WeightForm::kF16) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(from));
  } else if constexpr (form == WeightForm::kBF16) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(from));
  } else {
    return load(reinterpret_cast<const float*>(from));
  }
}

/// N times 16 rows of weights times R rows of activations, into acc: [R][acc_stride].
template <WeightForm form, int R, int N>
HWY_INLINE void float_block(const std::byte* lines, std::int64_t cols, const float* x, float* acc,
                            std::int64_t acc_stride) {
  constexpr std::int64_t kStep = form == WeightForm::kF32 ? 64 : 32;  // bytes of 16 weights
  V16 sum[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n)
      sum[r][n] = zero();
  }
  for (std::int64_t k = 0; k < cols; ++k) {
    V16 w[N];
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n)
      w[n] = load_weights<form>(lines + k * 64 + n * kStep);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int n = 0; n < N; ++n) {
        sum[r][n] = fma(x[k * R + r], w[n], sum[r][n]);
        pin(sum[r][n]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n)
      store(sum[r][n], acc + r * acc_stride + 16 * n);
  }
}

template <WeightForm form, int R>
void float_tile(const std::byte* panel, std::int64_t cols, const float* x, float* acc) {
  if constexpr (form == WeightForm::kF32) {
    float_block<form, R, 1>(panel, cols, x, acc, 16);
  } else if constexpr (2 * R <= kMaxSums) {
    float_block<form, R, 2>(panel, cols, x, acc, 32);
  } else {
    float_block<form, R, 1>(panel, cols, x, acc, 32);
    float_block<form, R, 1>(panel + 32, cols, x, acc + 16, 32);
  }
}

using FloatTile = void (*)(const std::byte*, std::int64_t, const float*, float*);

template <WeightForm form, int... kRows>
constexpr auto float_tiles(std::integer_sequence<int, kRows...> /*rows*/) {
  return std::array<FloatTile, sizeof...(kRows)>{&float_tile<form, kRows + 1>...};
}

/// One panel times all tiles. `panel` may be a quantised one expanded to kF32.
template <WeightForm form>
void float_panel(const std::byte* panel, std::int64_t rows, const FloatTiles& x, float* out,
                 std::int64_t stride) {
  constexpr auto kTiles = float_tiles<form>(std::make_integer_sequence<int, kFloatTileRows>());
  constexpr std::int64_t kPanelRows = form == WeightForm::kF32 ? 16 : 32;
  const std::int64_t num_tiles = x.tiling.count();
  for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
    const std::int64_t begin = x.tiling.begin(tile);
    const std::int64_t tile_rows = x.tiling.begin(tile + 1) - begin;
    alignas(64) float acc[kFloatTileRows * kPanelRows];
    kTiles[static_cast<std::size_t>(tile_rows - 1)](panel, x.cols, x.data + begin * x.cols, acc);
    write_rows(acc, kPanelRows, tile_rows, std::min(kPanelRows, rows), out + begin * stride,
               stride);
  }
}

/// Scales or minima of half h of a group for 16 rows.
V16 load_values(const FormTraits& traits, const std::byte* halves, const std::byte* subs) {
  alignas(64) float values[16];
  for (int r = 0; r < 16; ++r) {
    values[r] = f32_from_f16(load_as<std::uint16_t>(halves + 2 * r));
    if (traits.super) values[r] *= static_cast<float>(load_as<std::int8_t>(subs + r));
  }
  return load(values);
}

/// The integer part of 16 rows' weights in one column, as floats.
V16 load_column(const Segment& segment, const FormTraits& traits, const std::byte* lines,
                std::int64_t i) {
  constexpr hn::RebindToUnsigned<FloatTag> kBits{};
  const std::int64_t byte = traits.wide ? i : i % 16;
  const auto shift = static_cast<int>(8 * (byte % 4) + (!traits.wide && i >= 16 ? 4 : 0));
  const auto* line = reinterpret_cast<const std::uint32_t*>(lines + 64 * (byte / 4));
  V16 value;
  BRIGADE_FOR_PARTS {
    const auto words = hn::ShiftRightSame(hn::LoadU(kBits, line + p * kPartLanes), shift);
    const auto bits = hn::And(words, hn::Set(kBits, traits.wide ? 255U : 15U));
    value.part[p] = hn::ConvertTo(kFloat, hn::BitCast(kInt, bits));
  }
  if (!traits.table) return sub(value, set(static_cast<float>(traits.zero_point)));
  alignas(64) float lanes[16];
  store(value, lanes);
  for (float& lane : lanes)
    lane = segment.table[static_cast<int>(lane)];
  return load(lanes);
}

/// Expands a quantised panel into lines of 16 floats, a line for each column.
void expand_panel(const Segment& segment, const std::byte* panel, float* out) {
  const FormTraits traits = form_traits(segment.form);
  const FormLayout layout = form_layout(segment.form);
  for (std::int64_t g = 0; g < segment.cols / kGroupSize; ++g) {
    const std::byte* block = panel + segment.group_offset(g);
    const std::byte* halves = traits.super ? panel + segment.super_offset(g) : block;
    for (int h = 0; h < traits.halves; ++h) {
      const std::byte* subs = block + 16 * h;
      const V16 scale = traits.table ? load(reinterpret_cast<const float*>(block))
                                     : load_values(traits, halves, subs);
      V16 minimum = zero();
      if (traits.min) minimum = load_values(traits, halves + 32, subs + 16 * traits.halves);
      const std::int64_t width = kGroupSize / traits.halves;
      for (std::int64_t i = width * h; i < width * (h + 1); ++i) {
        const V16 value = load_column(segment, traits, block + layout.header_bytes, i);
        store(fma(value, scale, minimum), out + (g * kGroupSize + i) * 16);
      }
    }
  }
}

/// Quantised forms go through an expanded panel, as kF32.
template <WeightForm form>
void float_panels(const Segment& segment, Range panels, const FloatTiles& x, float* scratch,
                  float* out, std::int64_t stride) {
  for (std::int64_t p = panels.begin; p < panels.end; ++p) {
    const std::byte* panel = segment.data + p * segment.panel_bytes;
    const std::int64_t row = p * segment.panel_rows;
    const std::int64_t rows = std::min(segment.panel_rows, segment.rows - row);
    if (is_quantized(segment.form)) {
      expand_panel(segment, panel, scratch);
      panel = reinterpret_cast<const std::byte*>(scratch);
    }
    float_panel<form>(panel, rows, x, out + row, stride);
  }
}

void float_linear(const Segment& segment, Range panels, const FloatTiles& x, float* scratch,
                  float* out, std::int64_t stride) {
  switch (segment.form) {
    case WeightForm::kF16:
      return float_panels<WeightForm::kF16>(segment, panels, x, scratch, out, stride);
    case WeightForm::kBF16:
      return float_panels<WeightForm::kBF16>(segment, panels, x, scratch, out, stride);
    default:
      return float_panels<WeightForm::kF32>(segment, panels, x, scratch, out, stride);
  }
}

}  // namespace

void float_table(LinearKernels& kernels) {
  kernels.float_tile_rows = kFloatTileRows;
  kernels.float_ = &float_linear;
}

}  // namespace brigade::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels {

void add_float(CpuTarget target, LinearKernels& kernels) {
  switch (target) {
#if HWY_TARGETS & HWY_AVX3_DL
    case CpuTarget::kAvx3Dl:
      return N_AVX3_DL::float_table(kernels);
#endif
#if HWY_TARGETS & HWY_AVX2
    case CpuTarget::kAvx2:
      return N_AVX2::float_table(kernels);
#endif
    default:
      return HWY_NAMESPACE::float_table(kernels);
  }
}

}  // namespace brigade::kernels
#endif  // HWY_ONCE
