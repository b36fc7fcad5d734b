// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/base/partition.h"
#include "kernels/cpu/packed_weight.h"
#include "kernels/cpu/target.h"

namespace brigade::kernels {

/// Cuts rows into tiles of nearly equal size, at most `max_rows` each: one tile shares each load of
/// a weight.
struct Tiling {
  std::int64_t rows = 0;
  std::int64_t max_rows = 1;

  [[nodiscard]] std::int64_t count() const { return (rows + max_rows - 1) / max_rows; }
  [[nodiscard]] std::int64_t begin(std::int64_t tile) const { return rows * tile / count(); }
};

/// Activations rounded to int8 in groups of 32 of their own row: x is scale * q with scale = amax /
/// 127 and q within
/// +-127. A tile of R rows that begins at row b holds, for each group, 8 lines of R x 4 bytes; its
/// bytes begin at b * cols, its scales ([group][R]) at b * groups, its sums ([group][half][R]) at b
/// * groups * halves.
struct Int8Tiles {
  Tiling tiling;
  std::int64_t num_outputs =
      0;  ///< rows of the output: row r adds to output r - num_outputs, if >= 0
  std::int64_t cols = 0;
  std::int64_t halves = 1;       ///< sums of 32 columns each, or 2 of 16
  std::int8_t* q = nullptr;      ///< with `q_low`: its part h in -8..8 of q = 16 h + l
  std::int8_t* q_low = nullptr;  ///< l in -8..7; null where the kernel takes q whole
  float* scale = nullptr;
  float* scaled_sum = nullptr;     ///< scale times the sum of the group's (or half's) q
  std::int32_t* offset = nullptr;  ///< minus zero_point(form) times that sum

  [[nodiscard]] std::int64_t groups() const { return cols / 32; }
};

/// Activations in float: a tile of R rows from row b on lies at b * cols, as [col][R].
struct FloatTiles {
  Tiling tiling;
  std::int64_t cols = 0;
  float* data = nullptr;
};

/// Matrix products of one target over panels of a segment. `out` is the element of the first row of
/// activations and the first row of the segment; rows of activations are `stride` floats apart.
///
/// Whatever the tile, thread or target, an output is one chain of rounded operations:
///   int8:  for each group in order, and in K16 forms for each half of it, acc = fma(float(dot), ws
///   * as, acc), then
///          acc = fma(wm, as * sum, acc) with a minimum; dot is an exact integer, ws and wm are
///          exact
///   float: for each column in order, acc = fma(w, x, acc), w = fma(q, scale, minimum) where it is
///   quantised
struct LinearKernels {
  /// Rows of a tile for quantised forms (index: the form's number), and whether the form takes q in
  /// two parts.
  std::int64_t int8_tile_rows[kNumQuantizedForms];
  bool int8_split[kNumQuantizedForms];
  std::int64_t float_tile_rows;

  /// Rounds rows [rows.begin, rows.end) of x, `stride` apart, into their places.
  void (*quantize)(const float* x, std::int64_t stride, Range rows, std::int32_t zero_point,
                   const Int8Tiles& to);
  /// rest = x minus what rounding makes of it, for one row of `cols`.
  void (*leftover)(const float* x, std::int64_t cols, float* rest);
  void (*int8)(const Segment& segment, Range panels, const Int8Tiles& x, float* out,
               std::int64_t stride);

  /// Copies rows of the tiles [tiles.begin, tiles.end) into their places.
  void (*pack_float)(const float* x, std::int64_t stride, Range tiles, const FloatTiles& to);
  /// `scratch` holds 16 * cols floats when the form is quantised.
  void (*float_)(const Segment& segment, Range panels, const FloatTiles& x, float* scratch,
                 float* out, std::int64_t stride);
};

[[nodiscard]] LinearKernels linear_kernels(CpuTarget target);

// The parts of the table: roundings and packing, products of quantised forms, and of plain ones.
void add_activations(CpuTarget target, LinearKernels& kernels);
void add_int8(CpuTarget target, LinearKernels& kernels);
void add_float(CpuTarget target, LinearKernels& kernels);

/// Writes the rows of a tile's results that exist; others pad the panel. acc: [tile_rows]
/// [acc_stride].
inline void write_rows(const float* acc, std::int64_t acc_stride, std::int64_t tile_rows,
                       std::int64_t panel_rows, float* out, std::int64_t stride) {
  for (std::int64_t r = 0; r < tile_rows; ++r) {
    std::memcpy(out + r * stride, acc + r * acc_stride,
                static_cast<std::size_t>(panel_rows) * sizeof(float));
  }
}

}  // namespace brigade::kernels
