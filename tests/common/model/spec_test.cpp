// SPDX-License-Identifier: Apache-2.0
#include "common/model/spec.h"

#include <doctest/doctest.h>

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
  CHECK(spec->rope_theta == 10000.0);
  CHECK(spec->rope_divisors.empty());
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
  CHECK(spec->rope_theta == 100000.0);
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
  check_refused(keys_with("none", 1).add_u32("llama.expert_count", 8), "experts");
  check_refused(keys_with("none", 1).add_string("llama.rope.scaling.type", "yarn"), "yarn");
  check_refused(keys_with("none", 1), "tensor \"token_embd.weight\" is missing");
  check_refused(GgufBuilder().add_string("general.architecture", "mamba"), "\"mamba\"");
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
  unknown.add_tensor("blk.0.attn_q.bias", TensorType::kF32, 0, 96, std::span(values).first(96));
  check_refused(unknown, "tensor \"blk.0.attn_q.bias\" is not known");
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
  CHECK(spec_of(builder)->rope_divisors == divisors);
  GgufBuilder linear = tiny_model_builder({});
  linear.add_string("llama.rope.scaling.type", "linear").add_f32("llama.rope.scaling.factor", 4);
  CHECK(spec_of(linear)->rope_divisors == std::vector<float>(8, 4.0F));
  divisors[3] = 0;
  GgufBuilder zero = tiny_model_builder({});
  zero.add_tensor("rope_freqs.weight", TensorType::kF32, 0, 8, divisors);
  check_refused(zero, "rope_freqs.weight");
}

}  // namespace brigade::model
