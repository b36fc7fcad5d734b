// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "kernels/checks.h"
#include "tests/kernels/random_data.h"

namespace brigade::kernels {
namespace {

struct Shape {
  std::int64_t num_heads;
  std::int64_t num_kv_heads;
  std::int64_t head_dim;
  KvType type;
  std::int64_t window = 0;
  float soft_cap = 0;
};

/// Sequences with keys, values and queries for every position, and blocks in random order.
class Scene {
 public:
  Scene(const Shape& shape, const std::vector<std::int64_t>& contexts, std::uint64_t seed)
      : shape_(shape), contexts_(contexts) {
    Random random(seed);
    std::int64_t blocks = 0;
    for (const std::int64_t context : contexts) {
      tokens_ += context;
      blocks += (context + kBlockSize - 1) / kBlockSize;
    }
    for (std::int64_t i = 0; i < blocks; ++i)
      order_.push_back(static_cast<std::int32_t>(i));
    for (std::int64_t i = blocks - 1; i > 0; --i) {
      std::swap(order_[static_cast<std::size_t>(i)],
                order_[static_cast<std::size_t>(random.below(i + 1))]);
    }
    q = random_matrix(random, tokens_, shape.num_heads * shape.head_dim, 2);
    k = random_matrix(random, tokens_, shape.num_kv_heads * shape.head_dim, 2);
    v = random_matrix(random, tokens_, shape.num_kv_heads * shape.head_dim, 1);
  }

  /// A cache of this op set with all keys and values of layer 1 of 2 written.
  std::unique_ptr<KvCache> fill(Ops& ops) const {
    const KvShape kv{2, shape_.num_kv_heads, shape_.head_dim, shape_.type};
    auto cache = std::move(ops.make_kv_cache(kv, static_cast<std::int64_t>(order_.size()))).value();
    std::vector<std::int32_t> slots;
    std::size_t first_block = 0;
    for (const std::int64_t context : contexts_) {
      for (std::int64_t t = 0; t < context; ++t) {
        const std::size_t block = first_block + static_cast<std::size_t>(t / kBlockSize);
        slots.push_back(static_cast<std::int32_t>(order_[block] * kBlockSize + t % kBlockSize));
      }
      first_block += static_cast<std::size_t>((context + kBlockSize - 1) / kBlockSize);
    }
    ops.write_kv(*cache, 1, k.view(), v.view(), slots);
    return cache;
  }

  /// Attention of the last queries[i] positions of each sequence, rows in order.
  OwnedMatrix attend(Ops& ops, const KvCache& cache,
                     const std::vector<std::int64_t>& queries) const {
    return attend_at(ops, cache, queries, contexts_);
  }

  /// The same as if each sequence were only contexts[i] long yet.
  OwnedMatrix attend_at(Ops& ops, const KvCache& cache, const std::vector<std::int64_t>& queries,
                        const std::vector<std::int64_t>& contexts) const {
    std::vector<std::int32_t> cu_q = {0};
    std::vector<std::int32_t> cu_blocks = {0};
    std::vector<std::int32_t> lens;
    std::vector<float> rows;
    std::int64_t first_token = 0;
    for (std::size_t s = 0; s < contexts_.size(); ++s) {
      cu_q.push_back(static_cast<std::int32_t>(cu_q.back() + queries[s]));
      cu_blocks.push_back(static_cast<std::int32_t>(cu_blocks.back() + (contexts_[s] + 15) / 16));
      lens.push_back(static_cast<std::int32_t>(contexts[s]));
      const std::int64_t end = first_token + contexts[s];
      rows.insert(rows.end(), q.view().row(end - queries[s]), q.view().row(end - 1) + q.cols);
      first_token += contexts_[s];
    }
    OwnedMatrix selected(cu_q.back(), q.cols);
    selected.values = rows;
    OwnedMatrix out(cu_q.back(), q.cols);
    const AttentionBatch batch{cu_q, lens, cu_blocks, order_};
    ops.attention(cache, 1, selected.view(), batch,
                  {.scale = scale(), .soft_cap = shape_.soft_cap, .window = shape_.window},
                  out.view());
    return out;
  }

  [[nodiscard]] float scale() const {
    return 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
  }

  /// A score's error moves its weight by twice as much (its own and the maximum's); then come e^x
  /// (argument reduction of a value up to 87 included), two sums over the tokens and a division.
  /// Values are at most 1.
  [[nodiscard]] double bound(std::int64_t context) const {
    const auto dims = static_cast<double>(shape_.head_dim);
    const double score = (dims + 2) * kEpsilon * dims * 2 * 2 * scale();
    return 2 * score + (2 * static_cast<double>(context) + 20) * kEpsilon;
  }

  OwnedMatrix q{1, 1};
  OwnedMatrix k{1, 1};
  OwnedMatrix v{1, 1};

 private:
  Shape shape_;
  std::vector<std::int64_t> contexts_;
  std::vector<std::int32_t> order_;
  std::int64_t tokens_ = 0;
};

double worst_difference(const ConstMatrix& a, const ConstMatrix& b) {
  double worst = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t d = 0; d < a.cols; ++d) {
      const double error = std::abs(static_cast<double>(a.row(i)[d]) - b.row(i)[d]);
      if (std::isnan(error)) return 1e30;
      worst = std::max(worst, error);
    }
  }
  return worst;
}

const std::vector<Shape> kShapes = {
    {9, 3, 64, KvType::kF16},
    {6, 2, 64, KvType::kF32},
    {3, 1, 64, KvType::kF16},
    {8, 1, 128, KvType::kF16},
    {16, 4, 16, KvType::kF32},
    {5, 1, 80, KvType::kF16},
    {4, 4, 96, KvType::kF32},
    {14, 2, 40, KvType::kF16},
    {6, 1, 128, KvType::kF32},
    {2, 2, 24, KvType::kF32},
    {12, 3, 32, KvType::kF16},
    // windows: within a page, across chunks, one token, wider than what there is
    {9, 3, 64, KvType::kF16, 7},
    {4, 1, 256, KvType::kF16, 100},
    {4, 2, 48, KvType::kF32, 1},
    {6, 3, 16, KvType::kF32, 64, 2.0F},
    {8, 1, 128, KvType::kF16, 1000, 5.0F},
    {8, 4, 80, KvType::kF32, 0, 0.5F},
};

}  // namespace

TEST_CASE(
    "attention differs from the reference by no more than its roundings, decode and prompts "
    "mixed") {
  struct Load {
    std::vector<std::int64_t> contexts;
    std::vector<std::int64_t> queries;
  };
  const std::vector<Load> loads = {
      {{1}, {1}},
      {{16, 17}, {1, 1}},
      {{63, 64, 65}, {1, 1, 1}},
      {{600}, {1}},
      {{40}, {40}},
      {{129}, {129}},
      {{600, 33}, {5, 33}},
      {{5, 1, 90, 200, 77}, {1, 1, 90, 1, 13}},
      {{30, 20}, {0, 20}},
  };
  const auto reference = make_reference_ops(ActivationMode::kInt8);
  for (const Shape& shape : kShapes) {
    for (const Load& load : loads) {
      const Scene scene(shape, load.contexts, 3);
      const OwnedMatrix expected = scene.attend(*reference, *scene.fill(*reference), load.queries);
      std::int64_t longest = 0;
      for (const std::int64_t context : load.contexts)
        longest = std::max(longest, context);
      const CpuTarget slowest = longest > 100 ? supported_targets().back() : CpuTarget::kScalar;
      for (const CpuTarget target : supported_targets()) {
        if (target < slowest && target == CpuTarget::kScalar) continue;
        CAPTURE(to_string(target));
        CAPTURE(shape.num_heads);
        CAPTURE(shape.head_dim);
        CAPTURE(longest);
        const auto ops = cpu_ops(target);
        const OwnedMatrix out = scene.attend(*ops, *scene.fill(*ops), load.queries);
        CHECK(worst_difference(out.view(), expected.view()) <= scene.bound(longest));
      }
    }
  }
}

TEST_CASE("attention has the same bits on every target and with 1, 2 and 3 threads") {
  for (const Shape& shape : kShapes) {
    const Scene scene(shape, {70, 9, 131}, 5);
    const std::vector<std::int64_t> queries = {20, 1, 67};
    const auto scalar = cpu_ops(CpuTarget::kScalar);
    const OwnedMatrix expected = scene.attend(*scalar, *scene.fill(*scalar), queries);
    for (const CpuTarget target : supported_targets()) {
      for (const int threads : {1, 2, 3}) {
        if (target == CpuTarget::kScalar && threads == 1) continue;
        CAPTURE(to_string(target));
        CAPTURE(threads);
        CAPTURE(shape.head_dim);
        const auto ops = cpu_ops(target, threads);
        CHECK(same_bits(scene.attend(*ops, *scene.fill(*ops), queries).view(), 0, expected.view()));
      }
    }
  }
}

TEST_CASE("a prompt in chunks of 1, 7, 64 or whole gives the same bits, alone and among others") {
  for (const Shape& shape :
       {kShapes[0], kShapes[3], kShapes[5], kShapes[9], kShapes[11], kShapes[12], kShapes[14]}) {
    for (const CpuTarget target : supported_targets()) {
      if (target == CpuTarget::kScalar) continue;
      const std::int64_t length = 300;
      const Scene scene(shape, {length, 45}, 7);
      const auto ops = cpu_ops(target, 2);
      const std::unique_ptr<KvCache> cache = scene.fill(*ops);
      const OwnedMatrix whole = scene.attend(*ops, *cache, {length, 45});
      for (const std::int64_t chunk : {1, 7, 64}) {
        CAPTURE(to_string(target));
        CAPTURE(chunk);
        bool same = true;
        for (std::int64_t at = 0; at < length; at += chunk) {
          const std::int64_t rows = std::min(chunk, length - at);
          const OwnedMatrix alone = scene.attend_at(*ops, *cache, {rows, 0}, {at + rows, 45});
          const OwnedMatrix among = scene.attend_at(*ops, *cache, {rows, 3}, {at + rows, 45});
          same = same && same_bits(whole.view(), at, alone.view());
          ConstMatrix ours = among.view();
          ours.rows = rows;
          same = same && same_bits(whole.view(), at, ours);
        }
        CHECK(same);
      }
    }
  }
}

TEST_CASE("what lies behind a row's own position does not matter, not even infinity") {
  const Shape shape{3, 1, 32, KvType::kF32};
  for (const CpuTarget target : supported_targets()) {
    const auto ops = cpu_ops(target);
    Scene scene(shape, {40}, 9);
    const std::unique_ptr<KvCache> clean = scene.fill(*ops);
    const OwnedMatrix expected = scene.attend_at(*ops, *clean, {20}, {20});
    for (std::int64_t t = 20; t < 40; ++t) {
      for (std::int64_t d = 0; d < 32; ++d) {
        scene.k.view().row(t)[d] = INFINITY;
        scene.v.view().row(t)[d] = NAN;
      }
    }
    const std::unique_ptr<KvCache> dirty = scene.fill(*ops);
    CHECK(same_bits(scene.attend_at(*ops, *dirty, {20}, {20}).view(), 0, expected.view()));
  }
}

TEST_CASE("what lies before a row's window does not matter, and is not read") {
  for (const std::int64_t window : {5, 64, 70}) {
    const Shape shape{3, 1, 32, KvType::kF32, window};
    for (const CpuTarget target : supported_targets()) {
      const auto ops = cpu_ops(target);
      Scene scene(shape, {200}, 9);
      const std::unique_ptr<KvCache> clean = scene.fill(*ops);
      const OwnedMatrix expected = scene.attend(*ops, *clean, {20});
      for (std::int64_t t = 0; t < 181 - window; ++t) {
        for (std::int64_t d = 0; d < 32; ++d) {
          scene.k.view().row(t)[d] = INFINITY;
          scene.v.view().row(t)[d] = NAN;
        }
      }
      const std::unique_ptr<KvCache> dirty = scene.fill(*ops);
      CHECK(same_bits(scene.attend(*ops, *dirty, {20}).view(), 0, expected.view()));
    }
  }
}

TEST_CASE("scores far apart neither overflow nor lose the largest") {
  const Shape shape{2, 1, 16, KvType::kF32};
  const auto reference = make_reference_ops(ActivationMode::kInt8);
  Scene scene(shape, {150}, 13);
  for (float& x : scene.q.values)
    x *= 200;
  const OwnedMatrix expected = scene.attend(*reference, *scene.fill(*reference), {150});
  for (const CpuTarget target : supported_targets()) {
    const auto ops = cpu_ops(target);
    // Scores are 200 times larger, and so are their errors.
    CHECK(worst_difference(scene.attend(*ops, *scene.fill(*ops), {150}).view(), expected.view()) <=
          200 * scene.bound(150));
  }
}

TEST_CASE("a cache that cannot be addressed is refused") {
  for (Ops* ops : {cpu_ops(CpuTarget::kScalar).release(),
                   make_reference_ops(ActivationMode::kInt8).release()}) {
    const std::unique_ptr<Ops> owner(ops);
    CHECK(!ops->make_kv_cache({30, 3, 64, KvType::kF16}, 0).ok());
    CHECK(!ops->make_kv_cache({30, 0, 64, KvType::kF16}, 10).ok());
    CHECK(!ops->make_kv_cache({1 << 20, 1 << 20, 1 << 20, KvType::kF16}, 1 << 20).ok());
  }
}

}  // namespace brigade::kernels
