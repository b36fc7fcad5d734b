// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear_op.h"

#include <algorithm>

#include "common/base/check.h"
#include "kernels/weight_format.h"

namespace brigade::kernels {
namespace {

/// Prepared activations of this size stay in L2 while panels pass by.
constexpr std::int64_t kMaxPreparedBytes = 512 * 1024;
constexpr std::int64_t kMinBlockRows = 48;
/// Up to so many elements (about a microsecond of rounding) each thread prepares for itself:
/// cheaper than a join.
constexpr std::int64_t kMaxApartElements = 4096;
/// Weights times rows below which a fork does not pay.
constexpr std::int64_t kMinForkProducts = 64 * 1024;

std::int64_t bytes_per_row(bool int8, bool split, std::int64_t cols) {
  return int8 ? cols * (split ? 2 : 1) : cols * 4;
}

/// Thread's run of a segment's panels, when all segments of the weight are cut by bytes.
Range panels_of(const std::vector<Segment>& segments, std::size_t at, int thread, int num_threads) {
  std::int64_t total = 0;
  std::int64_t before = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (s == at) before = total;
    total += segments[s].bytes();
  }
  const Segment& segment = segments[at];
  const auto panel = [&](std::int64_t byte) {
    return std::clamp<std::int64_t>((byte - before) / segment.panel_bytes, 0, segment.num_panels());
  };
  return {panel(total * thread / num_threads), panel(total * (thread + 1) / num_threads)};
}

}  // namespace

LinearOp::LinearOp(const LinearKernels& kernels, ActivationMode activations, ThreadPool& pool)
    : kernels_(kernels),
      activations_(activations),
      pool_(pool),
      own_(static_cast<std::size_t>(pool.num_threads())),
      panel_(static_cast<std::size_t>(pool.num_threads())),
      tile_(static_cast<std::size_t>(pool.num_threads())) {}

void LinearOp::run(const PackedWeight& weight, ConstMatrix x, Matrix out) {
  const std::int64_t step = block_rows(weight);
  for (std::int64_t begin = 0; begin < x.rows; begin += step) {
    const std::int64_t rows = std::min(step, x.rows - begin);
    run_block(weight, input(weight, {x.row(begin), rows, x.cols, x.stride}),
              {out.row(begin), rows, out.cols, out.stride});
  }
}

LinearOp::Preparation LinearOp::preparation(WeightForm form) const {
  if (!is_quantized(form) || activations_ == ActivationMode::kFloat) {
    return {.tile_rows = kernels_.float_tile_rows};
  }
  const auto index = static_cast<std::size_t>(form);
  return {.int8 = true,
          .split = kernels_.int8_split[index],
          .zero_point = zero_point(form),
          .halves = form_traits(form).halves,
          .tile_rows = kernels_.int8_tile_rows[index]};
}

bool LinearOp::rounds_twice(const PackedWeight& weight) const {
  const auto rounds = [&](const Segment& segment) { return preparation(segment.form).int8; };
  return weight.rounding() == Rounding::kTwice &&
         std::any_of(weight.segments().begin(), weight.segments().end(), rounds);
}

std::int64_t LinearOp::block_rows(const PackedWeight& weight) const {
  std::int64_t bytes = 1;
  for (const Segment& segment : weight.segments()) {
    const Preparation how = preparation(segment.form);
    bytes = std::max(bytes, bytes_per_row(how.int8, how.split, segment.cols));
  }
  return std::max(kMinBlockRows, kMaxPreparedBytes / bytes) / (rounds_twice(weight) ? 2 : 1);
}

LinearOp::Prepared LinearOp::lay_out(const Preparation& how, const Input& in,
                                     ScratchBuffer& buffer) {
  // Plain forms meet a row whole.
  const Tiling tiling{.rows = how.int8 ? in.x.rows : in.num_outputs, .max_rows = how.tile_rows};
  if (!how.int8) {
    return {.floats = {.tiling = tiling,
                       .cols = in.x.cols,
                       .data = buffer.floats(tiling.rows * in.x.cols)}};
  }
  const std::int64_t elements = tiling.rows * in.x.cols;
  const std::int64_t values = elements / kGroupSize;
  const std::int64_t sums = values * how.halves;
  std::byte* at = buffer.bytes(elements * (how.split ? 2 : 1) + values * 4 + sums * 8);
  Int8Tiles tiles{
      .tiling = tiling, .num_outputs = in.num_outputs, .cols = in.x.cols, .halves = how.halves};
  tiles.q = reinterpret_cast<std::int8_t*>(at);
  if (how.split) tiles.q_low = reinterpret_cast<std::int8_t*>(at += elements);
  tiles.scale = reinterpret_cast<float*>(at + elements);
  tiles.scaled_sum = tiles.scale + values;
  tiles.offset = reinterpret_cast<std::int32_t*>(tiles.scaled_sum + sums);
  return {.int8 = tiles};
}

void LinearOp::prepare(const Preparation& how, const Input& in, const Prepared& to, int thread,
                       int num_threads) const {
  const ConstMatrix& x = in.x;
  if (how.int8) {
    const Range rows{x.rows * thread / num_threads, x.rows * (thread + 1) / num_threads};
    kernels_.quantize(x.data, x.stride, rows, how.zero_point, to.int8);
  } else {
    const std::int64_t tiles = to.floats.tiling.count();
    kernels_.pack_float(x.data, x.stride,
                        {tiles * thread / num_threads, tiles * (thread + 1) / num_threads},
                        to.floats);
  }
}

void LinearOp::multiply(const PackedWeight& weight, std::size_t segment, const Prepared& x,
                        Matrix out, int thread, int num_threads) {
  const Segment& panels = weight.segments()[segment];
  const Range share = panels_of(weight.segments(), segment, thread, num_threads);
  if (share.size() <= 0) return;
  multiply_panels(panels, share, x, out.data + panels.first_row, out.stride, thread);
}

void LinearOp::multiply_panels(const Segment& segment, const Range& panels, const Prepared& x,
                               float* out, std::int64_t stride, int thread) {
  if (preparation(segment.form).int8) {
    kernels_.int8(segment, panels, x.int8, out, stride);
    return;
  }
  float* scratch = nullptr;
  if (is_quantized(segment.form)) {
    scratch = panel_[static_cast<std::size_t>(thread)].floats(16 * segment.cols);
  }
  kernels_.float_(segment, panels, x.floats, scratch, out, stride);
}

template <typename Body>
void LinearOp::for_each_row(const ConstMatrix& x, const Body& body) {
  const int threads = x.rows * x.cols < kMinForkProducts ? 1 : pool_.num_threads();
  const auto share = [&](int thread) {
    const std::int64_t end = x.rows * (thread + 1) / threads;
    for (std::int64_t i = x.rows * thread / threads; i < end; ++i)
      body(i);
  };
  if (threads == 1) {
    share(0);
  } else {
    pool_.run(share);
  }
}

LinearOp::Input LinearOp::input(const PackedWeight& weight, const ConstMatrix& x) {
  if (!rounds_twice(weight)) return {x, x.rows};
  const Matrix both{twice_.floats(2 * x.rows * x.cols), 2 * x.rows, x.cols, x.cols};
  for_each_row(x, [&](std::int64_t i) {
    std::copy(x.row(i), x.row(i) + x.cols, both.row(i));
    kernels_.leftover(x.row(i), x.cols, both.row(x.rows + i));
  });
  return {both, x.rows};
}

void LinearOp::run_block(const PackedWeight& weight, const Input& in, const Matrix& out) {
  const int threads = pool_.num_threads();
  const std::int64_t elements = in.x.rows * in.x.cols;
  if (elements * weight.rows() < kMinForkProducts) {
    return run_apart(weight, in, out, /*thread=*/0, /*num_threads=*/1);
  }
  if (threads == 1 || elements <= kMaxApartElements) {
    return pool_.run([&](int thread) { run_apart(weight, in, out, thread, threads); });
  }
  Preparation last;
  Prepared prepared;
  for (std::size_t s = 0; s < weight.segments().size(); ++s) {
    const Preparation how = preparation(weight.segments()[s].form);
    if (s == 0 || !(how == last)) {
      last = how;
      prepared = lay_out(how, in, shared_);
      pool_.run([&](int thread) { prepare(how, in, prepared, thread, threads); });
    }
    pool_.run([&](int thread) { multiply(weight, s, prepared, out, thread, threads); });
  }
}

void LinearOp::run_tiles(const PackedWeight& weight, const ConstMatrix& x, const TileSink& take) {
  INVARIANT_EQ(weight.segments().size(), 1U);
  INVARIANT_LE(x.rows, block_rows(weight));
  const Segment& segment = weight.segments().front();
  const Input in = input(weight, x);
  const Preparation how = preparation(segment.form);
  const Prepared prepared = lay_out(how, in, shared_);
  const int threads = pool_.num_threads();
  pool_.run([&](int thread) { prepare(how, in, prepared, thread, threads); });
  const std::int64_t num_tiles = (segment.rows + kTileCols - 1) / kTileCols;
  pool_.run([&](int thread) {
    float* out = tile_[static_cast<std::size_t>(thread)].floats(x.rows * kTileCols);
    const std::int64_t end = num_tiles * (thread + 1) / threads;
    for (std::int64_t t = num_tiles * thread / threads; t < end; ++t) {
      Segment part = segment;
      part.data += t * kTileCols / segment.panel_rows * segment.panel_bytes;
      part.rows = std::min(kTileCols, segment.rows - t * kTileCols);
      multiply_panels(part, {0, part.num_panels()}, prepared, out, kTileCols, thread);
      take(t * kTileCols, {out, x.rows, part.rows, kTileCols});
    }
  });
}

void LinearOp::run_apart(const PackedWeight& weight, const Input& in, const Matrix& out, int thread,
                         int num_threads) {
  Preparation last;
  Prepared prepared;
  for (std::size_t s = 0; s < weight.segments().size(); ++s) {
    const Preparation how = preparation(weight.segments()[s].form);
    if (s == 0 || !(how == last)) {
      last = how;
      prepared = lay_out(how, in, own_[static_cast<std::size_t>(thread)]);
      prepare(how, in, prepared, /*thread=*/0, /*num_threads=*/1);
    }
    multiply(weight, s, prepared, out, thread, num_threads);
  }
}

}  // namespace brigade::kernels
