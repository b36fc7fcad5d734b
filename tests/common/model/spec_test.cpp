// SPDX-License-Identifier: Apache-2.0
#include "common/model/spec.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/strings.h"
#include "common/model/gguf.h"
#include "tests/support/tiny_model.h"

namespace brigade::model {
namespace {

using test::GgufBuilder;
using test::TempFile;
using test::tiny_model_builder;
using test::TinyModel;

Result<ModelSpec> spec_of(const GgufBuilder& builder) {
  const auto file = GgufFile::open(TempFile(builder.build()).path());
  if (!file.ok()) return file.status();
  return read_spec(**file);
}

void check_refused(const GgufBuilder& builder, std::string_view part) {
  const auto spec = spec_of(builder);
  REQUIRE_FALSE(spec.ok());
  CHECK_MESSAGE(spec.status().message().find(part) != std::string::npos, spec.status().message());
}

/// The keys a file must have, one of which a test replaces or leaves out; no tensors.
GgufBuilder keys_with(std::string_view changed, std::int64_t value) {
  GgufBuilder builder;
  builder.add_string("general.architecture", "llama");
  const std::vector<std::pair<std::string_view, std::int64_t>> keys = {
      {"llama.block_count", 2},          {"llama.context_length", 64},
      {"llama.embedding_length", 64},    {"llama.feed_forward_length", 64},
      {"llama.attention.head_count", 4}, {"llama.attention.head_count_kv", 2}};
  for (const auto& [key, usual] : keys) {
    if (key != changed) builder.add_u32(key, static_cast<std::uint32_t>(usual));
  }
  if (value >= 0) builder.add_u64(changed, static_cast<std::uint64_t>(value));
  builder.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  return builder;
}

}  // namespace

TEST_CASE("a llama file's keys become a ModelSpec") {
  const TinyModel tiny;
  const auto spec = spec_of(tiny_model_builder(tiny));
  REQUIRE_MESSAGE(spec.ok(), spec.status().message());
  CHECK(spec->architecture == "llama");
  CHECK(spec->name.starts_with("brigade-test-"));
  CHECK(spec->hidden_size == tiny.hidden_size);
  CHECK(spec->intermediate_size == tiny.intermediate_size);
  CHECK(spec->num_layers == tiny.num_layers);
  CHECK(spec->num_heads == 6);
  CHECK(spec->num_kv_heads == 3);
  CHECK(spec->head_dim == 16);
  CHECK(spec->rotary_dim == 16);
  CHECK(spec->vocab_size == 200);
  CHECK(spec->rope_style == RopeStyle::kAdjacent);
  REQUIRE(spec->ropes.size() == 1);
  CHECK(spec->ropes[0].theta == 10000.0);
  CHECK(spec->ropes[0].divisors.empty());
  CHECK(spec->ropes[0].magnitude == 1);
  CHECK(spec->attention_scale == 0.25F);
  CHECK(spec->tied_embeddings);
  CHECK_FALSE(spec_of(tiny_model_builder({.tied = false}))->tied_embeddings);
}

TEST_CASE("the real model is read") {
  const std::string path = test::real_model_path();
  REQUIRE_MESSAGE(!path.empty(), test::kNoModel);
  const auto file = GgufFile::open(path);
  REQUIRE_MESSAGE(file.ok(), file.status().message());
  const auto spec = read_spec(**file);
  REQUIRE_MESSAGE(spec.ok(), spec.status().message());
  CHECK(spec->hidden_size == 576);
  CHECK(spec->num_layers == 30);
  CHECK(spec->num_heads == 9);
  CHECK(spec->num_kv_heads == 3);
  CHECK(spec->vocab_size == 49152);
  CHECK(spec->context_length == 8192);
  CHECK(spec->ropes[0].theta == 100000.0);
  CHECK(spec->tied_embeddings);
}

TEST_CASE("numbers out of range are refused by key") {
  for (std::string_view key :
       {"llama.block_count", "llama.context_length", "llama.embedding_length",
        "llama.feed_forward_length", "llama.attention.head_count"}) {
    check_refused(keys_with(key, -1), key);  // missing
    check_refused(keys_with(key, 0), key);
    check_refused(keys_with(key, std::numeric_limits<std::int64_t>::max()), key);
  }
  check_refused(keys_with("llama.attention.head_count_kv", 3), "does not divide the 4 heads");
  check_refused(keys_with("llama.attention.head_count_kv", 5), "head_count_kv");
  check_refused(keys_with("llama.attention.head_count", 6), "does not divide");
  check_refused(keys_with("none", 1).add_f32("llama.rope.freq_base", 0), "freq_base");
  check_refused(
      keys_with("none", 1).add_f32("llama.rope.freq_base", std::numeric_limits<float>::quiet_NaN()),
      "freq_base");
  check_refused(keys_with("none", 1).add_u32("llama.rope.dimension_count", 15), "dimension_count");
  check_refused(keys_with("none", 1).add_u32("llama.rope.dimension_count", 18), "dimension_count");
  check_refused(keys_with("none", 1).add_u32("llama.expert_count", 8), "expert_used_count");
  check_refused(
      keys_with("none", 1).add_u32("llama.expert_count", 8).add_u32("llama.expert_used_count", 9),
      "expert_used_count");
  check_refused(keys_with("none", 1)
                    .add_u32("llama.expert_count", 8)
                    .add_u32("llama.expert_used_count", 2)
                    .add_u32("llama.expert_gating_func", 2),
                "only 1 (softmax)");
  check_refused(keys_with("none", 1).add_string("llama.rope.scaling.type", "yarn"),
                "original_context_length");
  check_refused(keys_with("none", 1).add_string("llama.rope.scaling.type", "dynamic"),
                "none, linear, yarn, longrope");
  check_refused(keys_with("none", 1).add_f32("llama.attn_logit_softcapping", -1), "softcapping");
  check_refused(keys_with("none", 1), "tensor \"token_embd.weight\" is missing");
  check_refused(GgufBuilder().add_string("general.architecture", "mamba"),
                "\"mamba\"; these can be run: llama, qwen2, qwen3, qwen3moe, phi3, gemma, gemma2, "
                "gemma3");
  check_refused(GgufBuilder(), "key \"general.architecture\" is missing");
}

TEST_CASE("heads without their own KV count have one KV head each, per-layer lists must agree") {
  const auto heads = spec_of(keys_with("llama.attention.head_count_kv", -1));
  REQUIRE_FALSE(heads.ok());  // no tensors, but the keys were taken
  CHECK(heads.status().message().find("token_embd") != std::string::npos);
  GgufBuilder uneven = keys_with("llama.attention.head_count_kv", -1);
  check_refused(uneven.add_i32s("llama.attention.head_count_kv", {2, 4}), "differs between layers");
  GgufBuilder even = keys_with("llama.attention.head_count_kv", -1);
  check_refused(even.add_i32s("llama.attention.head_count_kv", {2, 2}), "token_embd");
}

TEST_CASE("tensors that are missing, misshapen or unknown are refused by name") {
  const std::vector<float> values(4096, 0.5F);
  GgufBuilder unknown = tiny_model_builder({});
  unknown.add_tensor("blk.0.attn_sinks.weight", TensorType::kF32, 0, 6, std::span(values).first(6));
  check_refused(unknown, "tensor \"blk.0.attn_sinks.weight\" is not known");
  // A bias that only some have: either the others' are missing, or it would be ignored.
  GgufBuilder one_bias = tiny_model_builder({});
  one_bias.add_tensor("blk.0.attn_q.bias", TensorType::kF32, 0, 96, std::span(values).first(96));
  check_refused(one_bias, "tensor \"blk.0.attn_k.bias\" is missing");
  GgufBuilder late_bias = tiny_model_builder({});
  late_bias.add_tensor("blk.1.attn_q.bias", TensorType::kF32, 0, 96, std::span(values).first(96));
  check_refused(late_bias, "tensor \"blk.1.attn_q.bias\" is not known");
  std::string bytes = tiny_model_builder({}).build();
  const std::size_t at = bytes.find("blk.3.ffn_down.weight");
  bytes[at] = 'x';
  auto file = GgufFile::open(TempFile(bytes).path());
  REQUIRE(file.ok());
  CHECK(read_spec(**file).status().message().find("tensor \"blk.3.ffn_down.weight\" is missing") !=
        std::string::npos);
  bytes[at] = 'b';
  bytes[at + 21 + 4] ^= 0x20;  // cols 160 -> 128, still inside its data
  file = GgufFile::open(TempFile(bytes).path());
  REQUIRE_MESSAGE(file.ok(), file.status().message());
  CHECK(read_spec(**file).status().message().find("is [96, 128], not [96, 160]") !=
        std::string::npos);
}

TEST_CASE("rope frequencies come from the file's tensor or its linear factor") {
  std::vector<float> divisors = {1, 1, 2, 2, 4, 4, 8, 8};
  GgufBuilder builder = tiny_model_builder({});
  builder.add_tensor("rope_freqs.weight", TensorType::kF32, 0, 8, divisors);
  CHECK(spec_of(builder)->ropes[0].divisors ==
        std::vector<double>(divisors.begin(), divisors.end()));
  GgufBuilder linear = tiny_model_builder({});
  linear.add_string("llama.rope.scaling.type", "linear").add_f32("llama.rope.scaling.factor", 4);
  CHECK(spec_of(linear)->ropes[0].divisors == std::vector<double>(8, 4.0));
  divisors[3] = 0;
  GgufBuilder zero = tiny_model_builder({});
  zero.add_tensor("rope_freqs.weight", TensorType::kF32, 0, 8, divisors);
  check_refused(zero, "rope_freqs.weight");
}

TEST_CASE("layers get their windows and rotations by the family's period, or the file's own") {
  const auto windows = [](const GgufBuilder& builder) {
    std::vector<std::int64_t> found;
    const auto spec = spec_of(builder);
    REQUIRE_MESSAGE(spec.ok(), spec.status().message());
    for (const LayerSpec& layer : spec->layers)
      found.push_back(layer.window);
    return found;
  };
  const auto with_window = [](std::uint32_t window) {
    return tiny_model_builder({}).add_u32("llama.attention.sliding_window", window);
  };
  using Windows = std::vector<std::int64_t>;
  CHECK(windows(tiny_model_builder({})) == Windows{0, 0, 0, 0});
  CHECK(windows(with_window(100)) == Windows{100, 100, 100, 100});
  CHECK(windows(with_window(2048)) == Windows{0, 0, 0, 0});  // the whole context
  GgufBuilder period = with_window(100);
  CHECK(windows(period.add_u32("llama.attention.sliding_window_pattern", 2)) ==
        Windows{100, 0, 100, 0});
  GgufBuilder list = with_window(100);
  CHECK(windows(list.add_i32s("llama.attention.sliding_window_pattern", {0, 1, 1, 0})) ==
        Windows{0, 100, 100, 0});
  check_refused(with_window(100).add_i32s("llama.attention.sliding_window_pattern", {0, 1}),
                "2 entries for 4 layers");
  check_refused(with_window(100).add_u32("llama.attention.sliding_window_pattern", 0),
                "which layers have the window is not known");
  GgufBuilder two_bases = with_window(100);
  two_bases.add_u32("llama.attention.sliding_window_pattern", 2)
      .add_f32("llama.rope.freq_base_swa", 500);
  const auto spec = spec_of(two_bases);
  REQUIRE(spec->ropes.size() == 2);
  CHECK(spec->ropes[1].theta == 500);
  CHECK(spec->layers[0].rope == 1);
  CHECK(spec->layers[1].rope == 0);
}

TEST_CASE("YaRN divides low frequencies, keeps high ones, and raises the temperature") {
  GgufBuilder builder = tiny_model_builder({});
  builder.add_string("llama.rope.scaling.type", "yarn")
      .add_f32("llama.rope.scaling.factor", 4)
      .add_u32("llama.rope.scaling.original_context_length", 512);
  const auto spec = spec_of(builder);
  REQUIRE_MESSAGE(spec.ok(), spec.status().message());
  const RopeSpec& rope = spec->ropes[0];
  REQUIRE(rope.divisors.size() == 8);
  CHECK(rope.divisors.front() == 1);
  CHECK(rope.divisors.back() == doctest::Approx(4));
  CHECK(std::is_sorted(rope.divisors.begin(), rope.divisors.end()));
  CHECK(rope.magnitude == doctest::Approx(1 + 0.1 * std::log(4.0)));
}

}  // namespace brigade::model
