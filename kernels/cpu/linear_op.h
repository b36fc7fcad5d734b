// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "kernels/cpu/linear.h"
#include "kernels/cpu/packed_weight.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/op.h"

namespace brigade::kernels {

/// Ops::linear over a thread pool: prepares the activations (rounded or only packed into tiles),
/// then gives each thread an equal share of the weight's bytes, a contiguous run of panels.
class LinearOp final {
 public:
  LinearOp(const LinearKernels& kernels, ActivationMode activations, ThreadPool& pool);

  void run(const PackedWeight& weight, ConstMatrix x, Matrix out);

  /// Outputs of a tile.
  static constexpr std::int64_t kTileCols = 256;
  /// Gets the outputs from `first` on: [x.rows, at most kTileCols], gone after the call.
  using TileSink = std::function<void(std::int64_t first, const Matrix& tile)>;
  /// As run for a weight of one slice, but hands the outputs out in tiles that stay in the cache:
  /// each is whole on one thread, and several threads call at a time. x.rows: at most block_rows().
  void run_tiles(const PackedWeight& weight, const ConstMatrix& x, const TileSink& take);
  /// Rows of activations that share one read of the weight.
  [[nodiscard]] std::int64_t block_rows(const PackedWeight& weight) const;

 private:
  /// How a segment wants its activations.
  struct Preparation {
    bool int8 = false;
    bool split = false;
    std::int32_t zero_point = 0;
    std::int64_t halves = 1;
    std::int64_t tile_rows = 1;
    friend bool operator==(const Preparation&, const Preparation&) = default;
  };
  struct Prepared {
    Int8Tiles int8;
    FloatTiles floats;
  };

  [[nodiscard]] Preparation preparation(WeightForm form) const;
  /// Activations of `num_outputs` rows; those of x behind them are what rounding leaves of them.
  struct Input {
    ConstMatrix x;
    std::int64_t num_outputs;
  };
  /// Lays the tiles out in `buffer`.
  [[nodiscard]] static Prepared lay_out(const Preparation& how, const Input& in,
                                        ScratchBuffer& buffer);
  /// Fills a thread's share of the tiles.
  void prepare(const Preparation& how, const Input& in, const Prepared& to, int thread,
               int num_threads) const;
  void multiply(const PackedWeight& weight, std::size_t segment, const Prepared& x, Matrix out,
                int thread, int num_threads);
  void multiply_panels(const Segment& segment, const Range& panels, const Prepared& x, float* out,
                       std::int64_t stride, int thread);
  [[nodiscard]] bool rounds_twice(const PackedWeight& weight) const;
  /// body(row) for every row, on this thread alone when x is small.
  template <typename Body>
  void for_each_row(const ConstMatrix& x, const Body& body);
  /// x; for a weight that is rounded for twice with what rounding leaves of it, so that one read of
  /// the weight serves both.
  [[nodiscard]] Input input(const PackedWeight& weight, const ConstMatrix& x);

  void run_block(const PackedWeight& weight, const Input& in, const Matrix& out);
  void run_apart(const PackedWeight& weight, const Input& in, const Matrix& out, int thread,
                 int num_threads);

  LinearKernels kernels_;
  ActivationMode activations_;
  ThreadPool& pool_;
  ScratchBuffer shared_;              // activations that all threads read
  ScratchBuffer twice_;               // rows, then what rounding leaves of them
  std::vector<ScratchBuffer> own_;    // [threads]: activations each thread prepares for itself
  std::vector<ScratchBuffer> panel_;  // [threads]: a quantised panel expanded to floats
  std::vector<ScratchBuffer> tile_;   // [threads]: outputs on their way
};

}  // namespace brigade::kernels
