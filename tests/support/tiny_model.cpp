// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tiny_model.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "common/base/random.h"
#include "common/base/strings.h"

namespace brigade::test {
namespace {

/// Values around `mean`, spread uniformly by up to `spread`, a function of (seed, tensor, index).
std::vector<float> random_values(std::uint64_t seed, std::uint64_t tensor, std::int64_t count,
                                 double mean, double spread) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(mean + spread * (2 * random_uniform(seed, tensor, i) - 1));
  }
  return values;
}

}  // namespace

GgufBuilder tiny_model_builder(const TinyModel& m, std::uint32_t version) {
  GgufBuilder builder(version);
  const auto u32 = [&](std::string_view key, std::int64_t value) {
    builder.add_u32(key, static_cast<std::uint32_t>(value));
  };
  builder.add_string("general.architecture", "llama");
  u32("llama.block_count", m.num_layers);
  u32("llama.context_length", 2048);
  u32("llama.embedding_length", m.hidden_size);
  u32("llama.feed_forward_length", m.intermediate_size);
  u32("llama.attention.head_count", m.num_heads);
  u32("llama.attention.head_count_kv", m.num_kv_heads);
  u32("llama.attention.key_length", m.head_dim);
  u32("llama.attention.value_length", m.head_dim);
  builder.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  builder.add_f32("llama.rope.freq_base", 10000.0F);

  std::uint64_t tensor = 0;
  const auto matrix = [&](std::string_view name, std::int64_t rows, std::int64_t cols) {
    const double spread =
        std::sqrt(3.0 / static_cast<double>(cols));  // keeps the variance of its input
    builder.add_tensor(name, m.weights, rows, cols,
                       random_values(m.seed, ++tensor, rows * cols, 0, spread));
  };
  const auto norm = [&](std::string_view name) {
    builder.add_tensor(name, model::TensorType::kF32, 0, m.hidden_size,
                       random_values(m.seed, ++tensor, m.hidden_size, 1, 0.3));
  };
  matrix("token_embd.weight", m.vocab_size, m.hidden_size);
  for (std::int64_t i = 0; i < m.num_layers; ++i) {
    const auto name = [i](std::string_view part) {
      return str_cat("blk.", i, ".", part, ".weight");
    };
    norm(name("attn_norm"));
    matrix(name("attn_q"), m.num_heads * m.head_dim, m.hidden_size);
    matrix(name("attn_k"), m.num_kv_heads * m.head_dim, m.hidden_size);
    matrix(name("attn_v"), m.num_kv_heads * m.head_dim, m.hidden_size);
    matrix(name("attn_output"), m.hidden_size, m.num_heads * m.head_dim);
    norm(name("ffn_norm"));
    matrix(name("ffn_gate"), m.intermediate_size, m.hidden_size);
    matrix(name("ffn_up"), m.intermediate_size, m.hidden_size);
    matrix(name("ffn_down"), m.hidden_size, m.intermediate_size);
  }
  norm("output_norm.weight");
  if (!m.tied) matrix("output.weight", m.vocab_size, m.hidden_size);
  return builder;
}

std::string real_model_path() {
  const char* set = std::getenv("BRIGADE_MODEL");
  const std::string path = set != nullptr ? set : "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace brigade::test
