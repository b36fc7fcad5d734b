// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h

#include "kernels/cpu/linear.h"
#include "kernels/cpu/linear_int8-inl.h"
#include "kernels/cpu/vec-inl.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/weight_format.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::HWY_NAMESPACE {
namespace {

// --- Rounding activations

/// A group of 32 rounded: the values as words of four bytes.
struct RoundedGroup {
  alignas(16) std::int8_t q[32];
  float scale;
  std::int32_t sum;
};

HWY_INLINE void round_part(FloatPart x, FloatPart inverse, std::int8_t* q, std::int32_t& sum) {
  // Adding 1.5 * 2^23 rounds to the nearest integer, ties to even, and leaves it in the low bits.
  const FloatPart magic = hn::Set(kFloat, 12582912.0F);
  const auto bits = hn::BitCast(kInt, hn::Add(hn::Mul(x, inverse), magic));
  const auto values = hn::Sub(bits, hn::Set(kInt, 0x4b400000));
#if HWY_TARGET == HWY_SCALAR
  *q = static_cast<std::int8_t>(hn::GetLane(values));
#else
  constexpr hn::Rebind<std::int8_t, FloatTag> kBytes{};
  hn::StoreU(hn::DemoteTo(kBytes, values), kBytes, q);
#endif
  sum += hn::GetLane(hn::SumOfLanes(kInt, values));
}

HWY_INLINE void round_group(const float* x, RoundedGroup& out) {
  const V16 a = load(x);
  const V16 b = load(x + 16);
  const float amax = reduce_max(max(absolute(a), absolute(b)));
  // Below this 127 / amax would overflow; such a group counts as zeros.
  const FloatPart inverse = hn::Set(kFloat, amax < 1e-30F ? 0.0F : 127.0F / amax);
  out.scale = amax / 127.0F;
  out.sum = 0;
  BRIGADE_FOR_PARTS round_part(a.part[p], inverse, out.q + p * kPartLanes, out.sum);
  BRIGADE_FOR_PARTS round_part(b.part[p], inverse, out.q + 16 + p * kPartLanes, out.sum);
}

/// Writes a group's 8 words `rows` words apart, whole or in parts h and l.
HWY_INLINE void place_group(const RoundedGroup& group, std::int64_t rows, std::int8_t* q,
                            std::int8_t* q_low) {
  if (q_low == nullptr) {
    for (int j = 0; j < 8; ++j)
      std::memcpy(q + j * rows * 4, group.q + 4 * j, 4);
    return;
  }
  std::int8_t high[32];
  std::int8_t low[32];
  for (int i = 0; i < 32; ++i) {
    high[i] = static_cast<std::int8_t>((group.q[i] + 8) >> 4);
    low[i] = static_cast<std::int8_t>(group.q[i] - 16 * high[i]);
  }
  for (int j = 0; j < 8; ++j) {
    std::memcpy(q + j * rows * 4, high + 4 * j, 4);
    std::memcpy(q_low + j * rows * 4, low + 4 * j, 4);
  }
}

void quantize(const float* x, std::int64_t stride, Range rows, std::int32_t zero_point,
              const Int8Tiles& to) {
  const std::int64_t groups = to.groups();
  for (std::int64_t tile = 0; tile < to.tiling.count(); ++tile) {
    const std::int64_t begin = to.tiling.begin(tile);
    const std::int64_t tile_rows = to.tiling.begin(tile + 1) - begin;
    const std::int64_t end = std::min(rows.end, begin + tile_rows);
    for (std::int64_t row = std::max(rows.begin, begin); row < end; ++row) {
      for (std::int64_t g = 0; g < groups; ++g) {
        RoundedGroup group;
        round_group(x + row * stride + g * kGroupSize, group);
        const std::int64_t at = begin * to.cols + (g * 8 * tile_rows + (row - begin)) * 4;
        place_group(group, tile_rows, to.q + at, to.q_low == nullptr ? nullptr : to.q_low + at);
        const std::int64_t value = begin * groups + g * tile_rows + (row - begin);
        to.scale[value] = group.scale;
        to.scaled_sum[value] = group.scale * static_cast<float>(group.sum);
        to.offset[value] = -zero_point * group.sum;
      }
    }
  }
}

// --- Products

/// Tells the rows of a panel that exist from those that pad it.
HWY_INLINE void write_rows(const float* acc, std::int64_t acc_stride, std::int64_t tile_rows,
                           std::int64_t panel_rows, float* out, std::int64_t stride) {
  for (std::int64_t r = 0; r < tile_rows; ++r) {
    std::memcpy(out + r * stride, acc + r * acc_stride,
                static_cast<std::size_t>(panel_rows) * sizeof(float));
  }
}

using Int8Tile = void (*)(const std::uint8_t*, std::int64_t, TileInput, float*);

template <WeightForm form, int... kRows>
constexpr auto int8_tiles(std::integer_sequence<int, kRows...> /*rows*/) {
  return std::array<Int8Tile, sizeof...(kRows)>{&int8_tile<form, kRows + 1>...};
}

template <WeightForm form>
void int8_panels(const Segment& segment, Range panels, const Int8Tiles& x, float* out,
                 std::int64_t stride) {
  constexpr int kMax = kInt8TileRows[static_cast<int>(form)];
  constexpr auto kTiles = int8_tiles<form>(std::make_integer_sequence<int, kMax>());
  const std::int64_t groups = x.groups();
  const std::int64_t num_tiles = x.tiling.count();
  for (std::int64_t p = panels.begin; p < panels.end; ++p) {
    const auto* panel =
        reinterpret_cast<const std::uint8_t*>(segment.data + p * segment.panel_bytes);
    const std::int64_t rows = std::min<std::int64_t>(16, segment.rows - 16 * p);
    for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
      const std::int64_t begin = x.tiling.begin(tile);
      const std::int64_t tile_rows = x.tiling.begin(tile + 1) - begin;
      const TileInput input{
          .q = x.q + begin * x.cols,
          .q_low = x.q_low == nullptr ? nullptr : x.q_low + begin * x.cols,
          .scale = x.scale + begin * groups,
          .scaled_sum = x.scaled_sum + begin * groups,
          .offset = x.offset + begin * groups,
      };
      alignas(64) float acc[kMax * 16];
      kTiles[static_cast<std::size_t>(tile_rows - 1)](panel, groups, input, acc);
      write_rows(acc, 16, tile_rows, rows, out + begin * stride + 16 * p, stride);
    }
  }
}

void int8(const Segment& segment, Range panels, const Int8Tiles& x, float* out,
          std::int64_t stride) {
  switch (segment.form) {
    case WeightForm::kQ4:
      return int8_panels<WeightForm::kQ4>(segment, panels, x, out, stride);
    case WeightForm::kQ4Min:
      return int8_panels<WeightForm::kQ4Min>(segment, panels, x, out, stride);
    default:
      return int8_panels<WeightForm::kQ8>(segment, panels, x, out, stride);
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

/// Expands a quantised panel into lines of 16 floats, a line for each column.
template <WeightForm form>
void expand_panel(const std::byte* panel, std::int64_t cols, float* out) {
  constexpr hn::RebindToUnsigned<FloatTag> kBits{};
  for (std::int64_t g = 0; g < cols / kGroupSize; ++g) {
    const std::byte* block = panel + g * kBlockBytes<form>;
    const V16 scale = load_f16(reinterpret_cast<const std::uint16_t*>(block));
    V16 minimum = zero();
    if constexpr (kHasMin<form>) {
      minimum = load_f16(reinterpret_cast<const std::uint16_t*>(block + 32));
    }
    const V16 bias = set(static_cast<float>(zero_point(form)));
    for (std::int64_t i = 0; i < kGroupSize; ++i) {
      const std::int64_t byte = kEightBits<form> ? i : i % 16;
      const std::int64_t shift = 8 * (byte % 4) + (!kEightBits<form> && i >= 16 ? 4 : 0);
      const auto* line =
          reinterpret_cast<const std::uint32_t*>(block + kHeaderBytes<form> + 64 * (byte / 4));
      V16 value;
      BRIGADE_FOR_PARTS {
        const auto words =
            hn::ShiftRightSame(hn::LoadU(kBits, line + p * kPartLanes), static_cast<int>(shift));
        const auto bits = hn::And(words, hn::Set(kBits, kEightBits<form> ? 255U : 15U));
        value.part[p] = hn::ConvertTo(kFloat, hn::BitCast(kInt, bits));
      }
      store(fma(sub(value, bias), scale, minimum), out + (g * kGroupSize + i) * 16);
    }
  }
}

template <WeightForm form>
void float_panels(const Segment& segment, Range panels, const FloatTiles& x, float* scratch,
                  float* out, std::int64_t stride) {
  for (std::int64_t p = panels.begin; p < panels.end; ++p) {
    const std::byte* panel = segment.data + p * segment.panel_bytes;
    const std::int64_t row = p * segment.panel_rows;
    const std::int64_t rows = std::min(segment.panel_rows, segment.rows - row);
    if constexpr (is_quantized(form)) {
      expand_panel<form>(panel, x.cols, scratch);
      float_panel<WeightForm::kF32>(reinterpret_cast<const std::byte*>(scratch), rows, x, out + row,
                                    stride);
    } else {
      float_panel<form>(panel, rows, x, out + row, stride);
    }
  }
}

void float_linear(const Segment& segment, Range panels, const FloatTiles& x, float* scratch,
                  float* out, std::int64_t stride) {
  switch (segment.form) {
    case WeightForm::kQ4:
      return float_panels<WeightForm::kQ4>(segment, panels, x, scratch, out, stride);
    case WeightForm::kQ4Min:
      return float_panels<WeightForm::kQ4Min>(segment, panels, x, scratch, out, stride);
    case WeightForm::kQ8:
      return float_panels<WeightForm::kQ8>(segment, panels, x, scratch, out, stride);
    case WeightForm::kF16:
      return float_panels<WeightForm::kF16>(segment, panels, x, scratch, out, stride);
    case WeightForm::kBF16:
      return float_panels<WeightForm::kBF16>(segment, panels, x, scratch, out, stride);
    default:
      return float_panels<WeightForm::kF32>(segment, panels, x, scratch, out, stride);
  }
}

}  // namespace

LinearKernels linear_table() {
  LinearKernels kernels{};
  for (int form = 0; form < 3; ++form) {
    kernels.int8_tile_rows[form] = kInt8TileRows[form];
    kernels.int8_split[form] = kInt8Split[form];
  }
  kernels.float_tile_rows = kFloatTileRows;
  kernels.quantize = &quantize;
  kernels.int8 = &int8;
  kernels.pack_float = &pack_float;
  kernels.float_ = &float_linear;
  return kernels;
}

}  // namespace brigade::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels {

LinearKernels linear_kernels(CpuTarget target) {
  switch (target) {
#if HWY_TARGETS & HWY_AVX3_DL
    case CpuTarget::kAvx3Dl:
      return N_AVX3_DL::linear_table();
#endif
#if HWY_TARGETS & HWY_AVX2
    case CpuTarget::kAvx2:
      return N_AVX2::linear_table();
#endif
    default:
      return HWY_NAMESPACE::linear_table();
  }
}

}  // namespace brigade::kernels
#endif  // HWY_ONCE
