// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/partition.h"
#include "common/base/status.h"

namespace brigade::model {

enum class RopeStyle : std::uint8_t {
  kAdjacent,  ///< pairs (2i, 2i+1): GGUF's `llama` architecture
  kHalves,    ///< pairs (i, i + rotary_dim/2): HF's own order, `qwen2` and others
};

/// What the gate of a gated FFN goes through.
enum class Activation : std::uint8_t {
  kSilu,
  kGelu,  ///< the tanh form of it
};

/// One set of rotations: angle i of a row is its position times theta^(-2i / rotary_dim) /
/// divisors[i]. Linear, llama 3, YaRN and LongRoPE scaling are all divisors and a magnitude.
struct RopeSpec {
  double theta = 10000;
  std::vector<double> divisors;  ///< [rotary_dim / 2], or empty: all 1
  double magnitude = 1;          ///< cos and sin are multiplied by it
};

struct LayerSpec {
  std::int64_t window = 0;   ///< tokens a row sees, itself included; 0: all before it
  std::uint32_t rope = 0;    ///< index of ModelSpec::ropes
  bool has_experts = false;  ///< a mixture of experts, not one FFN
};

/// A mixture of experts: softmax over all experts' logits, the best num_used, their weights.
struct ExpertSpec {
  std::int64_t num_experts = 0;
  std::int64_t num_used = 0;  ///< of them, a token
  std::int64_t intermediate_size = 0;
  bool normalized = true;  ///< the weights of those used are made to sum to 1
  float scale = 1;         ///< and then multiplied by this
  bool stacked = true;     ///< one tensor holds all experts' matrices; else one tensor each
};

/// Everything that distinguishes one decoder from another, as data (families differ here, not in
/// code paths).
struct ModelSpec {
  std::string name;          ///< what requests call it: the file's name without .gguf
  std::string architecture;  ///< general.architecture
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t context_length = 0;  ///< tokens, the model's own limit
  float rms_norm_eps = 1e-5F;
  RopeStyle rope_style = RopeStyle::kAdjacent;
  std::int64_t rotary_dim = 0;
  std::vector<RopeSpec> ropes = {RopeSpec{}};
  std::vector<LayerSpec> layers;  ///< [num_layers], or empty: all as LayerSpec{}
  ExpertSpec experts;             ///< of the layers that have some
  Activation activation = Activation::kSilu;
  float embedding_scale = 1;     ///< rows of the embedding table are multiplied by it
  float attention_scale = 0;     ///< scores are multiplied by it
  float attention_soft_cap = 0;  ///< c: scores become c tanh(score / c); 0: as they are
  float final_soft_cap = 0;      ///< the same for logits
  bool qk_norm = false;          ///< heads of q and k are normed before they are rotated
  bool post_norms = false;       ///< what attention and FFN give is normed before it is added
  bool qkv_bias = false;
  bool output_bias = false;      ///< of the attention output
  bool ffn_bias = false;         ///< of gate, up and down
  bool fused_qkv = false;        ///< one tensor holds the rows of q, then k, then v
  bool fused_gate_up = false;    ///< `ffn_up` holds the rows of gate, then of up
  bool tied_embeddings = false;  ///< the head is the embedding table

  [[nodiscard]] LayerSpec layer(std::int64_t i) const {
    return layers.empty() ? LayerSpec{} : layers[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::int64_t heads_per_kv_head() const { return num_heads / num_kv_heads; }
};

/// What of a layer each TP rank holds, by rank. Cuts are in units of 32 columns, which every weight
/// form can be cut at. FFN columns are cut so that attention and FFN work together come out even (a
/// rank with more heads gets fewer columns).
///
/// With at least as many KV heads as ranks, a rank has whole KV heads and the query heads that read
/// them; with fewer, the query heads of one KV head are shared out, and each of those ranks holds
/// that KV head:
///
///     4 heads on 1 KV head, 3 ranks:   heads [0, 2) [2, 3) [3, 4)   kv_heads [0, 1) thrice
struct TensorSplit {
  Partition heads;
  std::vector<Range> kv_heads;
  Partition ffn;         ///< of intermediate_size
  Partition expert_ffn;  ///< of each expert's intermediate_size; empty without experts
  Partition vocab;       ///< of vocab_size
};

/// Tells whether the model can run as tp_size x pp_size, and what would fit if not. `pp_size` at
/// most num_layers; `tp_size` at most num_heads (and few enough that every rank gets FFN and
/// vocabulary).
[[nodiscard]] Status check_grid(const ModelSpec& spec, std::int64_t tp_size, std::int64_t pp_size);

/// A pure function of its arguments, so that router and ranks agree without asking. Requires
/// check_grid.
[[nodiscard]] TensorSplit split_tensors(const ModelSpec& spec, std::int64_t tp_size);

/// Layers of each stage, cut by what they cost a token: weights read, the head's (in the last
/// stage) too, and KV read, over the window where a layer has one. No stage is empty. Requires
/// check_grid.
[[nodiscard]] Partition split_layers(const ModelSpec& spec, std::int64_t pp_size);

}  // namespace brigade::model
