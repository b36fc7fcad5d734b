// SPDX-License-Identifier: Apache-2.0
#include "common/model/spec.h"

#include <algorithm>
#include <cmath>

#include "common/base/strings.h"
#include "common/model/architecture.h"
#include "common/model/gguf.h"
#include "common/model/spec_keys.h"
#include "common/model/spec_parts.h"

namespace brigade::model {
namespace {

constexpr std::int64_t kMaxLayers = 1024;
constexpr std::int64_t kMaxHidden = 1 << 17;
constexpr std::int64_t kMaxIntermediate = 1 << 20;
constexpr std::int64_t kMaxHeads = 1024;
constexpr std::int64_t kMaxHeadDim = 1024;
constexpr std::int64_t kMaxVocab = 1 << 22;
constexpr std::int64_t kMaxContext = 1 << 24;
constexpr std::int64_t kMaxExperts = 1024;
constexpr std::int64_t kSoftmaxGating = 1;

Status read_sizes(const SpecKeys& keys, ModelSpec& spec) {
  ASSIGN_OR_RETURN(spec.num_layers, keys.integer("block_count", 1, kMaxLayers));
  ASSIGN_OR_RETURN(spec.context_length, keys.integer("context_length", 1, kMaxContext));
  ASSIGN_OR_RETURN(spec.hidden_size, keys.integer("embedding_length", 1, kMaxHidden));
  ASSIGN_OR_RETURN(spec.intermediate_size,
                   keys.integer("feed_forward_length", 1, kMaxIntermediate));
  ASSIGN_OR_RETURN(const double eps, keys.number("attention.layer_norm_rms_epsilon", 0, 1));
  spec.rms_norm_eps = static_cast<float>(eps);
  return {};
}

Status read_heads(const SpecKeys& keys, ModelSpec& spec) {
  ASSIGN_OR_RETURN(spec.num_heads, keys.integer("attention.head_count", 1, kMaxHeads));
  ASSIGN_OR_RETURN(spec.num_kv_heads,
                   keys.integer_or("attention.head_count_kv", spec.num_heads, 1, kMaxHeads));
  if (spec.num_heads % spec.num_kv_heads != 0) {
    return data_loss(str_cat("key ", quoted(keys.key("attention.head_count_kv")), " is ",
                             spec.num_kv_heads, ", which does not divide the ", spec.num_heads,
                             " heads"));
  }
  if (!keys.has("attention.key_length") && spec.hidden_size % spec.num_heads != 0) {
    return data_loss(str_cat("key ", quoted(keys.key("attention.head_count")), " is ",
                             spec.num_heads, ", which does not divide the hidden size ",
                             spec.hidden_size));
  }
  ASSIGN_OR_RETURN(
      spec.head_dim,
      keys.integer_or("attention.key_length", spec.hidden_size / spec.num_heads, 2, kMaxHeadDim));
  ASSIGN_OR_RETURN(const auto value_dim,
                   keys.integer_or("attention.value_length", spec.head_dim, 2, kMaxHeadDim));
  if (value_dim != spec.head_dim || spec.head_dim % 2 != 0 || spec.head_dim > kMaxHeadDim) {
    return invalid_argument(str_cat("heads of ", spec.head_dim, " key and ", value_dim,
                                    " value dimensions are not supported: equal and even, up to ",
                                    kMaxHeadDim));
  }
  return {};
}

Status read_experts(const SpecKeys& keys, ModelSpec& spec) {
  ExpertSpec& experts = spec.experts;
  ASSIGN_OR_RETURN(experts.num_experts, keys.integer_or("expert_count", 0, 0, kMaxExperts));
  if (experts.num_experts == 0) return {};
  ASSIGN_OR_RETURN(experts.num_used, keys.integer("expert_used_count", 1, experts.num_experts));
  ASSIGN_OR_RETURN(
      experts.intermediate_size,
      keys.integer_or("expert_feed_forward_length", spec.intermediate_size, 1, kMaxIntermediate));
  ASSIGN_OR_RETURN(experts.normalized, keys.boolean_or("expert_weights_norm", true));
  ASSIGN_OR_RETURN(const double scale, keys.number_or("expert_weights_scale", 1, 0, 1e6));
  experts.scale = static_cast<float>(scale);
  ASSIGN_OR_RETURN(const auto gating,
                   keys.integer_or("expert_gating_func", kSoftmaxGating, 0, 255));
  if (gating != kSoftmaxGating) {
    return invalid_argument(str_cat("key ", quoted(keys.key("expert_gating_func")), " is ", gating,
                                    "; only ", kSoftmaxGating, " (softmax) is supported"));
  }
  return {};
}

/// Scores' and logits' scales and caps.
Status read_scales(const SpecKeys& keys, const Architecture& architecture, ModelSpec& spec) {
  const bool wide = spec.num_layers == architecture.wide_scale_layers;
  const auto dimensions =
      static_cast<double>(wide ? spec.hidden_size / spec.num_heads : spec.head_dim);
  ASSIGN_OR_RETURN(const double scale,
                   keys.number_or("attention.scale", 1 / std::sqrt(dimensions), 0, 1e6));
  spec.attention_scale = static_cast<float>(scale);
  const auto cap = [&](std::string_view name, double fallback, float& to) -> Status {
    // Files of models without a cap may hold a 0.
    ASSIGN_OR_RETURN(const double value, keys.number_or(name, fallback, -1e-30, 1e6));
    to = static_cast<float>(value);
    return {};
  };
  RETURN_IF_ERROR(
      cap("attn_logit_softcapping", architecture.attention_soft_cap, spec.attention_soft_cap));
  RETURN_IF_ERROR(cap("final_logit_softcapping", architecture.final_soft_cap, spec.final_soft_cap));
  if (architecture.scale_embedding) {
    spec.embedding_scale = std::sqrt(static_cast<float>(spec.hidden_size));
  }
  return {};
}

Status read_vocabulary(const SpecKeys& keys, ModelSpec& spec) {
  const TensorInfo* embedding = keys.file().find_tensor("token_embd.weight");
  if (embedding == nullptr) return data_loss("tensor \"token_embd.weight\" is missing");
  ASSIGN_OR_RETURN(spec.vocab_size, keys.integer_or("vocab_size", embedding->rows, 1, kMaxVocab));
  if (spec.vocab_size > kMaxVocab) {
    return data_loss(str_cat("tensor \"token_embd.weight\" has ", spec.vocab_size,
                             " rows; at most ", kMaxVocab));
  }
  return {};
}

/// What the tensors that are there tell: the first layers' speak for all, and check_tensors holds
/// the others to it.
void read_from_tensors(const GgufFile& file, const Architecture& architecture, ModelSpec& spec) {
  const auto has = [&](std::string_view name) { return file.find_tensor(name) != nullptr; };
  spec.tied_embeddings = !has("output.weight");
  spec.fused_qkv = has("blk.0.attn_qkv.weight");
  spec.qkv_bias = architecture.qkv_bias || has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias");
  spec.output_bias = has("blk.0.attn_output.bias");
  spec.experts.stacked = !has("blk.0.ffn_gate.0.weight");
  const auto dense = std::find_if(spec.layers.begin(), spec.layers.end(),
                                  [](const LayerSpec& layer) { return !layer.has_experts; });
  const std::string prefix = str_cat("blk.", dense - spec.layers.begin(), ".ffn_");
  const TensorInfo* up = file.find_tensor(prefix + "up.weight");
  spec.fused_gate_up =
      up != nullptr && up->rows == 2 * spec.intermediate_size && !has(prefix + "gate.weight");
  spec.ffn_bias = has(prefix + "down.bias");
}

Result<ModelSpec> read_with(const GgufFile& file, const Architecture& architecture) {
  ModelSpec spec;
  spec.architecture = architecture.name;
  spec.rope_style = architecture.rope_style;
  spec.activation = architecture.activation;
  spec.qk_norm = architecture.qk_norm;
  spec.post_norms = architecture.post_norms;
  spec.name = file.name();
  const SpecKeys keys(file, architecture.name);
  RETURN_IF_ERROR(read_sizes(keys, spec));
  RETURN_IF_ERROR(read_heads(keys, spec));
  RETURN_IF_ERROR(read_experts(keys, spec));
  RETURN_IF_ERROR(read_scales(keys, architecture, spec));
  RETURN_IF_ERROR(read_rope(keys, architecture, spec));
  RETURN_IF_ERROR(read_layers(keys, architecture, spec));
  RETURN_IF_ERROR(read_vocabulary(keys, spec));
  read_from_tensors(file, architecture, spec);
  RETURN_IF_ERROR(check_tensors(file, spec));
  return spec;
}

}  // namespace

Result<ModelSpec> read_spec(const GgufFile& file) {
  const std::string path = quoted(file.path(), 512);
  const auto name = file.string("general.architecture");
  if (!name.ok()) return name.status().with_context(path);
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name != *name) continue;
    auto spec = read_with(file, architecture);
    if (!spec.ok()) return spec.status().with_context(path);
    return spec;
  }
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    known += str_cat(known.empty() ? "" : ", ", architecture.name);
  }
  return invalid_argument(str_cat(path, ": key \"general.architecture\" is ", quoted(*name),
                                  "; these can be run: ", known));
}

}  // namespace brigade::model
