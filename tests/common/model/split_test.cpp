// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "common/model/spec.h"

namespace brigade::model {
namespace {

/// SmolLM2-135M's sizes.
ModelSpec smollm2() {
  return {.name = "SmolLM2-135M-Instruct",
          .architecture = "llama",
          .hidden_size = 576,
          .intermediate_size = 1536,
          .num_layers = 30,
          .num_heads = 9,
          .num_kv_heads = 3,
          .head_dim = 64,
          .vocab_size = 49152};
}

std::int64_t layer_work(const ModelSpec& spec, const TensorSplit& split, std::size_t rank) {
  const std::int64_t group = spec.num_heads / spec.num_kv_heads;
  return split.kv_heads[rank].size() * (2 * group + 2) * spec.head_dim * spec.hidden_size +
         split.ffn[rank].size() * 3 * spec.hidden_size;
}

void check_covers(const Partition& parts, std::int64_t size, std::int64_t unit) {
  std::int64_t at = 0;
  for (const Range& part : parts) {
    REQUIRE(part.begin == at);
    REQUIRE(part.size() > 0);
    REQUIRE((part.end % unit == 0 || part.end == size));
    at = part.end;
  }
  REQUIRE(at == size);
}

}  // namespace

TEST_CASE("a grid that does not fit is refused with what would") {
  const ModelSpec spec = smollm2();
  for (std::int64_t tp : {1, 2, 3, 4, 9}) {
    for (std::int64_t pp : {1, 2, 6, 30})
      CHECK(check_grid(spec, tp, pp).ok());
  }
  CHECK(check_grid(spec, 10, 1).message() ==
        "tp 10 does not fit SmolLM2-135M-Instruct: it has 9 heads; tp 1 to 9 and pp 1 to 30 would");
  CHECK(check_grid(spec, 1, 31).message() ==
        "pp 31 does not fit SmolLM2-135M-Instruct: it has 30 layers; tp 1 to 9 and pp 1 to 30 "
        "would");
  CHECK_FALSE(check_grid(spec, 0, 1).ok());
  CHECK_FALSE(check_grid(spec, 1, -1).ok());
  ModelSpec narrow = spec;
  narrow.head_dim = 24;
  CHECK(check_grid(narrow, 1, 1).ok());
  CHECK(check_grid(narrow, 2, 1).message().find("9 heads of 24 columns, 3 a KV head") !=
        std::string::npos);
  ModelSpec small_ffn = spec;
  small_ffn.intermediate_size = 64;
  CHECK(check_grid(small_ffn, 3, 1).message().find("64 FFN columns") != std::string::npos);
}

TEST_CASE("a rank with more KV heads gets fewer FFN columns, so that work comes out even") {
  const ModelSpec spec = smollm2();
  const TensorSplit two = split_tensors(spec, 2);
  CHECK(two.kv_heads == Partition{{0, 2}, {2, 3}});
  CHECK(two.ffn[0].size() < two.ffn[1].size());
  const auto a = static_cast<double>(layer_work(spec, two, 0));
  const auto b = static_cast<double>(layer_work(spec, two, 1));
  CHECK(std::max(a, b) / std::min(a, b) < 1.03);
  const TensorSplit three = split_tensors(spec, 3);
  CHECK(three.ffn == Partition{{0, 512}, {512, 1024}, {1024, 1536}});
}

TEST_CASE("every split covers everything once, in units, with something for each rank") {
  ModelSpec spec = smollm2();
  for (std::int64_t kv_heads : {1, 2, 3, 5, 8}) {
    spec.num_kv_heads = kv_heads;
    spec.num_heads = kv_heads * 4;
    for (std::int64_t ffn : {32, 96, 300, 1536, 8960}) {
      spec.intermediate_size = ffn;
      for (std::int64_t tp = 1; check_grid(spec, tp, 1).ok(); ++tp) {
        const TensorSplit split = split_tensors(spec, tp);
        check_covers(split.heads, spec.num_heads, 1);
        if (tp <= kv_heads) check_covers(split.kv_heads, kv_heads, 1);
        check_covers(split.ffn, ffn, 32);
        check_covers(split.vocab, spec.vocab_size, 32);
      }
    }
  }
}

TEST_CASE("stages are never empty, and the last has fewer layers because of the head") {
  const ModelSpec spec = smollm2();
  CHECK(split_layers(spec, 1) == Partition{{0, 30}});
  CHECK(split_layers(spec, 2) == Partition{{0, 19}, {19, 30}});
  for (std::int64_t pp = 1; pp <= 30; ++pp) {
    const Partition stages = split_layers(spec, pp);
    REQUIRE(static_cast<std::int64_t>(stages.size()) == pp);
    check_covers(stages, 30, 1);
    for (const Range& stage : stages)
      CHECK(stages.back().size() <= stage.size());
  }
}

TEST_CASE("with fewer KV heads than ranks, query heads are shared out and the KV head is on each") {
  ModelSpec gemma = smollm2();
  gemma.num_heads = 4;
  gemma.num_kv_heads = 1;
  gemma.head_dim = 256;
  const TensorSplit three = split_tensors(gemma, 3);
  CHECK(three.heads == Partition{{0, 2}, {2, 3}, {3, 4}});
  CHECK(three.kv_heads == std::vector<Range>{{0, 1}, {0, 1}, {0, 1}});
  CHECK(three.ffn[0].size() < three.ffn[1].size());
  CHECK_FALSE(check_grid(gemma, 5, 1).ok());
  const TensorSplit uneven = split_tensors(smollm2(), 4);
  CHECK(uneven.heads == Partition{{0, 2}, {2, 3}, {3, 6}, {6, 9}});
  CHECK(uneven.kv_heads == std::vector<Range>{{0, 1}, {0, 1}, {1, 2}, {2, 3}});
  // Heads of 48 columns are cut two by two: 96 is a multiple of 32.
  ModelSpec narrow = smollm2();
  narrow.num_heads = 12;
  narrow.num_kv_heads = 3;
  narrow.head_dim = 48;
  CHECK(split_tensors(narrow, 6).heads ==
        Partition{{0, 2}, {2, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 12}});
  CHECK_FALSE(check_grid(narrow, 7, 1).ok());
  // A KV head with one query head of 80 columns: two stay together.
  ModelSpec paired = smollm2();
  paired.num_heads = 7;
  paired.num_kv_heads = 7;
  paired.head_dim = 80;
  CHECK(split_tensors(paired, 3).kv_heads == std::vector<Range>{{0, 4}, {4, 6}, {6, 7}});
  CHECK_FALSE(check_grid(paired, 5, 1).ok());
}

TEST_CASE("experts' columns are cut as well") {
  ModelSpec spec = smollm2();
  spec.experts = {.num_experts = 8, .num_used = 2, .intermediate_size = 96};
  const TensorSplit split = split_tensors(spec, 3);
  CHECK(split.expert_ffn == Partition{{0, 32}, {32, 64}, {64, 96}});
  CHECK(check_grid(spec, 4, 1).message().find("96 FFN columns") != std::string::npos);
}

TEST_CASE("layers that cost less are more to a stage") {
  ModelSpec spec = smollm2();
  spec.vocab_size = 32;
  spec.layers.resize(30);
  CHECK(split_layers(spec, 3) == Partition{{0, 10}, {10, 20}, {20, 30}});
  for (std::size_t i = 0; i < 15; ++i)
    spec.layers[i].window = 16;
  CHECK(split_layers(spec, 2)[0].size() > 15);
  spec.experts = {.num_experts = 8, .num_used = 8, .intermediate_size = 1536};
  for (std::size_t i = 15; i < 30; ++i)
    spec.layers[i].has_experts = true;
  CHECK(split_layers(spec, 2)[0].size() > 20);
}

}  // namespace brigade::model
