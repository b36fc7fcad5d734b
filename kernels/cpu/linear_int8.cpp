// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear_int8.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h

#include "kernels/cpu/linear.h"
#include "kernels/cpu/linear_int8-inl.h"
#include "kernels/cpu/vec-inl.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"
#include "kernels/weight_format.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::HWY_NAMESPACE {
namespace {

/// Asks for the output's lines while the tile is computed: a store that misses would hold up all
/// stores behind it.
HWY_INLINE void prefetch_rows(const float* out, std::int64_t stride, std::int64_t tile_rows) {
  for (std::int64_t r = 0; r < tile_rows; ++r) {
    __builtin_prefetch(out + r * stride, /*rw=*/1);
    __builtin_prefetch(out + r * stride + 15, /*rw=*/1);
  }
}

/// Puts a tile's results, rows [begin, begin + tile_rows) of `x`, in the columns of `out` that
/// exist. A second row of an output is added to the first, which an earlier tile or this one wrote.
HWY_INLINE void put_rows(const float* acc, const Int8Tiles& x, std::int64_t begin,
                         std::int64_t tile_rows, std::int64_t columns, float* out,
                         std::int64_t stride) {
  const std::int64_t firsts = std::clamp<std::int64_t>(x.num_outputs - begin, 0, tile_rows);
  write_rows(acc, kLanes, firsts, columns, out + begin * stride, stride);
  for (std::int64_t r = firsts; r < tile_rows; ++r) {
    float* to = out + (begin + r - x.num_outputs) * stride;
    const V16 second = load(acc + kLanes * r);
    if (columns == kLanes) {
      store(add(load(to), second), to);
    } else {
      store_n(add(load_n(to, columns), second), to, columns);
    }
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
  constexpr int kMax = takes_bytes(form) ? kWideTileRows : kNarrowTileRows;
  constexpr auto kTiles = int8_tiles<form>(std::make_integer_sequence<int, kMax>());
  const std::int64_t groups = x.groups();
  const std::int64_t num_tiles = x.tiling.count();
  const std::int64_t block = panels_at_once(segment, x.tiling);
  const bool prefetch_one_row = gains_by_prefetch();
  alignas(16) std::uint8_t table[16] = {};
  if constexpr (kTraits<form>.table) {
    for (int i = 0; i < 16; ++i)
      table[i] = static_cast<std::uint8_t>(segment.table[i] + zero_point(form));
  }
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
          .scaled_sum = x.scaled_sum + begin * groups * x.halves,
          .offset = x.offset + begin * groups * x.halves,
          .ahead = nullptr,
          .first_groups = segment.first_groups,
          .table = table,
      };
      for (std::int64_t p = first; p < last; ++p) {
        const auto* panel =
            reinterpret_cast<const std::uint8_t*>(segment.data + p * segment.panel_bytes);
        if (last_tile && (tile_rows > 1 || prefetch_one_row)) {
          input.ahead = panel + block * segment.panel_bytes;
        }
        float* to = out + 16 * p;
        if (num_tiles > 1) {
          const std::int64_t output = begin < x.num_outputs ? begin : begin - x.num_outputs;
          prefetch_rows(to + output * stride, stride, std::min(tile_rows, x.num_outputs - output));
        }
        alignas(64) float acc[kMax * 16];
        kTiles[static_cast<std::size_t>(tile_rows - 1)](panel, groups, input, acc);
        put_rows(acc, x, begin, tile_rows, std::min<std::int64_t>(16, segment.rows - 16 * p), to,
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
    case WeightForm::kQ8:
      return int8_panels<WeightForm::kQ8>(segment, panels, x, out, stride);
    case WeightForm::kQ8Min:
      return int8_panels<WeightForm::kQ8Min>(segment, panels, x, out, stride);
    case WeightForm::kQ4K:
      return int8_panels<WeightForm::kQ4K>(segment, panels, x, out, stride);
    case WeightForm::kQ8K:
      return int8_panels<WeightForm::kQ8K>(segment, panels, x, out, stride);
    case WeightForm::kQ4K16:
      return int8_panels<WeightForm::kQ4K16>(segment, panels, x, out, stride);
    case WeightForm::kQ8K16:
      return int8_panels<WeightForm::kQ8K16>(segment, panels, x, out, stride);
    default:
      return int8_panels<WeightForm::kTable4>(segment, panels, x, out, stride);
  }
}

}  // namespace

void int8_table(LinearKernels& kernels) {
  for (int form = 0; form < kNumQuantizedForms; ++form) {
    const bool wide = takes_bytes(static_cast<WeightForm>(form));
    kernels.int8_tile_rows[form] = wide ? kWideTileRows : kNarrowTileRows;
    kernels.int8_split[form] = wide && kSplitActivations;
  }
  kernels.int8 = &int8;
}

}  // namespace brigade::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels {

void add_int8(CpuTarget target, LinearKernels& kernels) {
  switch (target) {
#if HWY_TARGETS & HWY_AVX3_DL
    case CpuTarget::kAvx3Dl:
      return N_AVX3_DL::int8_table(kernels);
#endif
#if HWY_TARGETS & HWY_AVX2
    case CpuTarget::kAvx2:
      return N_AVX2::int8_table(kernels);
#endif
    default:
      return HWY_NAMESPACE::int8_table(kernels);
  }
}

}  // namespace brigade::kernels
#endif  // HWY_ONCE
