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
  double rope_theta = 10000;
  /// [rotary_dim / 2] or empty: each inverse frequency is divided by its entry.
  std::vector<float> rope_divisors;
  bool tied_embeddings = false;  ///< the head is the embedding table
};

/// What of a layer each TP rank holds, by rank. Heads follow KV heads: rank r has heads
/// [kv_heads[r].begin * group, kv_heads[r].end * group) with group = num_heads / num_kv_heads. FFN
/// columns are cut so that attention and FFN work together come out even (a rank with more KV heads
/// gets fewer columns), in units of 32, which every weight form can be cut at.
struct TensorSplit {
  Partition kv_heads;
  Partition ffn;    ///< of intermediate_size
  Partition vocab;  ///< of vocab_size, in units of 32
};

/// Tells whether the model can run as tp_size x pp_size, and what would fit if not. `pp_size` at
/// most num_layers; `tp_size` at most num_kv_heads (and few enough that every rank gets FFN and
/// vocabulary).
[[nodiscard]] Status check_grid(const ModelSpec& spec, std::int64_t tp_size, std::int64_t pp_size);

/// A pure function of its arguments, so that router and ranks agree without asking. Requires
/// check_grid.
[[nodiscard]] TensorSplit split_tensors(const ModelSpec& spec, std::int64_t tp_size);

/// Layers of each stage, cut by cost (the head counted to the last stage, the embedding to the
/// first). No stage is empty. Requires check_grid.
[[nodiscard]] Partition split_layers(const ModelSpec& spec, std::int64_t pp_size);

}  // namespace brigade::model
