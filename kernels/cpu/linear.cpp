// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h

#include "kernels/cpu/linear.h"
#include "kernels/cpu/linear_int8-inl.h"
#include "kernels/cpu/vec-inl.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/weight_format.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::HWY_NAMESPACE {
namespace {

// --- Rounding activations

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

template <bool kSplit>
HWY_INLINE void quantize_row(const float* x, std::int32_t zero_point, const Int8Tiles& to,
                             std::int64_t tile_begin, std::int64_t tile_rows, std::int64_t r) {
  const std::int64_t groups = to.groups();
  const std::int64_t step = 4 * tile_rows;
  std::int8_t* q = to.q + tile_begin * to.cols + 4 * r;
  std::int8_t* q_low = kSplit ? to.q_low + tile_begin * to.cols + 4 * r : nullptr;
  float* scale = to.scale + tile_begin * groups + r;
  float* scaled_sum = to.scaled_sum + tile_begin * groups + r;
  std::int32_t* offset = to.offset + tile_begin * groups + r;
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
    scaled_sum[g * tile_rows] = group_scale * static_cast<float>(sum);
    offset[g * tile_rows] = -zero_point * sum;
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

// --- Products

/// Tells the rows of a panel that exist from those that pad it.
HWY_INLINE void write_rows(const float* acc, std::int64_t acc_stride, std::int64_t tile_rows,
                           std::int64_t panel_rows, float* out, std::int64_t stride) {
  for (std::int64_t r = 0; r < tile_rows; ++r) {
    std::memcpy(out + r * stride, acc + r * acc_stride,
                static_cast<std::size_t>(panel_rows) * sizeof(float));
  }
}

/// Asks for the output's lines while the tile is computed: a store that misses would hold up all
/// stores behind it.
HWY_INLINE void prefetch_rows(const float* out, std::int64_t stride, std::int64_t tile_rows) {
  for (std::int64_t r = 0; r < tile_rows; ++r) {
    __builtin_prefetch(out + r * stride, /*rw=*/1);
    __builtin_prefetch(out + r * stride + 15, /*rw=*/1);
  }
}

using Int8Tile = void (*)(const std::uint8_t*, std::int64_t, TileInput, float*);

template <WeightForm form, int... kRows>
constexpr auto int8_tiles(std::integer_sequence<int, kRows...> /*rows*/) {
  return std::array<Int8Tile, sizeof...(kRows)>{&int8_tile<form, kRows + 1>...};
}

/// Panels that a tile of activations meets while it is in L1: of this size together. Rows of the
/// output are then written in longer pieces, and the activations read from L2 less often.
constexpr std::int64_t kPanelBlockBytes = 24 * 1024;

std::int64_t panels_at_once(const Segment& segment, const Tiling& tiling) {
  return tiling.count() == 1 ? 1
                             : std::max<std::int64_t>(1, kPanelBlockBytes / segment.panel_bytes);
}

template <WeightForm form>
void int8_panels(const Segment& segment, Range panels, const Int8Tiles& x, float* out,
                 std::int64_t stride) {
  constexpr int kMax = kInt8TileRows[static_cast<int>(form)];
  constexpr auto kTiles = int8_tiles<form>(std::make_integer_sequence<int, kMax>());
  const std::int64_t groups = x.groups();
  const std::int64_t num_tiles = x.tiling.count();
  const std::int64_t block = panels_at_once(segment, x.tiling);
  const bool prefetch_one_row = gains_by_prefetch();
  for (std::int64_t first = panels.begin; first < panels.end; first += block) {
    const std::int64_t last = std::min(panels.end, first + block);
    for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
      const std::int64_t begin = x.tiling.begin(tile);
      const std::int64_t tile_rows = x.tiling.begin(tile + 1) - begin;
      const bool last_tile = tile + 1 == num_tiles;
      TileInput input{
          .q = x.q + begin * x.cols,
          .q_low = x.q_low == nullptr ? nullptr : x.q_low + begin * x.cols,
          .scale = x.scale + begin * groups,
          .scaled_sum = x.scaled_sum + begin * groups,
          .offset = x.offset + begin * groups,
          .ahead = nullptr,
      };
      for (std::int64_t p = first; p < last; ++p) {
        const auto* panel =
            reinterpret_cast<const std::uint8_t*>(segment.data + p * segment.panel_bytes);
        if (last_tile && (tile_rows > 1 || prefetch_one_row)) {
          input.ahead = panel + block * segment.panel_bytes;
        }
        float* to = out + begin * stride + 16 * p;
        if (num_tiles > 1) prefetch_rows(to, stride, tile_rows);
        alignas(64) float acc[kMax * 16];
        kTiles[static_cast<std::size_t>(tile_rows - 1)](panel, groups, input, acc);
        write_rows(acc, 16, tile_rows, std::min<std::int64_t>(16, segment.rows - 16 * p), to,
                   stride);
      }
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
  kernels.leftover = &leftover;
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
