// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/weights/shard_weights.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/tiny_model.h"

namespace brigade::worker {
namespace {

using kernels::ConstMatrix;
using kernels::Matrix;

std::vector<float> wave(std::int64_t size) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i));
  return values;
}

std::vector<float> apply(kernels::Ops& ops, const kernels::Weight& weight,
                         std::span<const float> x) {
  REQUIRE(weight.cols() == static_cast<std::int64_t>(x.size()));
  std::vector<float> out(static_cast<std::size_t>(weight.rows()));
  ops.linear(weight, ConstMatrix(x.data(), 1, weight.cols(), weight.cols()),
             Matrix{out.data(), 1, weight.rows(), weight.rows()});
  return out;
}

struct Loaded {
  explicit Loaded(const std::string& bytes) {
    const test::TempFile temp(bytes);
    file = model::GgufFile::open(temp.path()).value();
    spec = model::read_spec(*file).value();
  }

  ShardWeights shard(const Shard& shard) {
    return load_shard(*file, spec, shard, *ops, [](float) {}).value();
  }

  std::shared_ptr<const model::GgufFile> file;
  model::ModelSpec spec;
  std::unique_ptr<kernels::Ops> ops = kernels::make_reference_ops(kernels::ActivationMode::kFloat);
};

}  // namespace

TEST_CASE("the ranks' shares stack and sum to the whole layer, however uneven") {
  Loaded model(tiny_model_builder(test::TinyModel{}).build());
  const ShardWeights whole = model.shard(make_shard(model.spec, {1, 2}, 0, 1));
  const std::vector<float> x = wave(model.spec.hidden_size);
  const std::vector<float> gate_up = apply(*model.ops, *whole.layers[0].ffn.gate_up, x);
  const std::vector<float> qkv = apply(*model.ops, *whole.layers[0].qkv, x);
  for (std::int64_t tp : {2, 3}) {
    std::vector<double> o(static_cast<std::size_t>(model.spec.hidden_size));
    std::vector<double> down(o.size());
    for (std::int64_t rank = 0; rank < tp; ++rank) {
      const Shard shard = make_shard(model.spec, {1, 2}, rank, tp);
      const ShardWeights part = model.shard(shard);
      const LayerWeights& layer = part.layers[0];
      const auto q = static_cast<std::size_t>(shard.heads.size() * model.spec.head_dim);
      const std::vector<float> own_qkv = apply(*model.ops, *layer.qkv, x);
      const auto first_q = static_cast<std::size_t>(shard.heads.begin * model.spec.head_dim);
      for (std::size_t i = 0; i < q; ++i)
        CHECK(own_qkv[i] == qkv[first_q + i]);
      const auto v_of = [&](std::size_t kv_heads) { return kv_heads * 16; };
      const auto own_kv = v_of(static_cast<std::size_t>(shard.kv_heads.size()));
      const auto first_kv = v_of(static_cast<std::size_t>(shard.kv_heads.begin));
      for (std::size_t i = 0; i < own_kv; ++i) {
        CHECK(own_qkv[q + i] == qkv[96 + first_kv + i]);                // K
        CHECK(own_qkv[q + own_kv + i] == qkv[96 + 48 + first_kv + i]);  // V
      }
      const std::vector<float> own_ffn = apply(*model.ops, *layer.ffn.gate_up, x);
      const auto columns = static_cast<std::size_t>(shard.ffn.size());
      const auto first = static_cast<std::size_t>(shard.ffn.begin);
      for (std::size_t i = 0; i < columns; ++i) {
        CHECK(own_ffn[i] == gate_up[first + i]);
        CHECK(own_ffn[columns + i] == gate_up[160 + first + i]);
      }
      const std::vector<float> wide = wave(160);
      const auto own_o = apply(*model.ops, *layer.o, std::span(wide).subspan(first_q, q));
      const auto own_down =
          apply(*model.ops, *layer.ffn.down, std::span(wide).subspan(first, columns));
      for (std::size_t i = 0; i < o.size(); ++i) {
        o[i] += own_o[i];
        down[i] += own_down[i];
      }
    }
    const std::vector<float> wide = wave(160);
    const auto whole_o = apply(*model.ops, *whole.layers[0].o, std::span(wide).first(96));
    const auto whole_down = apply(*model.ops, *whole.layers[0].ffn.down, wide);
    for (std::size_t i = 0; i < o.size(); ++i) {
      CHECK(whole_o[i] == doctest::Approx(o[i]).epsilon(1e-5));
      CHECK(whole_down[i] == doctest::Approx(down[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("only the ends hold vocabulary, and a tied head on one rank is held once") {
  Loaded model(tiny_model_builder(test::TinyModel{}).build());
  const ShardWeights both = model.shard(make_shard(model.spec, {0, 4}, 0, 1));
  CHECK(both.head == both.embedding);
  const ShardWeights first = model.shard(make_shard(model.spec, {0, 1}, 1, 2));
  CHECK(first.embedding->rows() == 200 - 128);
  CHECK(first.head == nullptr);
  CHECK(first.output_norm.empty());
  const ShardWeights middle = model.shard(make_shard(model.spec, {1, 3}, 0, 2));
  CHECK(middle.embedding == nullptr);
  CHECK(middle.head == nullptr);
  const ShardWeights last = model.shard(make_shard(model.spec, {3, 4}, 0, 2));
  CHECK(last.head->rows() == 128);
  CHECK(last.embedding == nullptr);
  Loaded untied(tiny_model_builder(test::TinyModel{.tied = false}).build());
  const ShardWeights two = untied.shard(make_shard(untied.spec, {0, 4}, 0, 1));
  CHECK(two.head != two.embedding);
  CHECK(two.bytes() > both.bytes());
}

TEST_CASE("progress rises to one") {
  Loaded model(tiny_model_builder(test::TinyModel{}).build());
  for (const Range& layers : {Range{0, 4}, Range{0, 2}, Range{1, 2}, Range{2, 4}}) {
    std::vector<float> seen;
    const Shard shard = make_shard(model.spec, layers, 1, 3);
    REQUIRE(load_shard(*model.file, model.spec, shard, *model.ops, [&](float f) {
              seen.push_back(f);
            }).ok());
    CHECK(std::is_sorted(seen.begin(), seen.end()));
    CHECK(seen.front() > 0);
    CHECK(seen.back() == 1.0F);
  }
}

}  // namespace brigade::worker
