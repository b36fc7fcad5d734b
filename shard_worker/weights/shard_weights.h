// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/model/gguf.h"
#include "common/model/spec.h"
#include "kernels/op.h"
#include "shard_worker/weights/shard.h"

namespace brigade::worker {

/// A gated FFN of `ffn` columns on this rank: a layer's own, or one expert's.
struct FfnWeights {
  std::unique_ptr<kernels::Weight> gate_up;  ///< [ffn + ffn, hidden_size]: gate, up stacked
  std::unique_ptr<kernels::Weight> down;     ///< [hidden_size, ffn]: a partial sum comes out

  [[nodiscard]] std::uint64_t bytes() const { return gate_up->bytes() + down->bytes(); }
};

/// One layer's share of a rank. Shapes are [rows (outputs), cols (inputs)], with q = heads *
/// head_dim and kv = kv_heads * head_dim of this rank. Vectors that the model does not have are
/// empty; so are, on all ranks but the first, biases of what is summed over the ranks.
struct LayerWeights {
  std::vector<float> attn_norm;             ///< [hidden_size]
  std::unique_ptr<kernels::Weight> qkv;     ///< [q + kv + kv, hidden_size]: Q, K, V stacked
  std::vector<float> qkv_bias;              ///< [q + kv + kv]
  std::vector<float> q_norm;                ///< [head_dim]
  std::vector<float> k_norm;                ///< [head_dim]
  std::unique_ptr<kernels::Weight> o;       ///< [hidden_size, q]: a partial sum comes out
  std::vector<float> o_bias;                ///< [hidden_size]
  std::vector<float> post_attn_norm;        ///< [hidden_size]
  std::vector<float> ffn_norm;              ///< [hidden_size]
  FfnWeights ffn;                           ///< empty with experts
  std::vector<float> gate_up_bias;          ///< [ffn + ffn]
  std::vector<float> down_bias;             ///< [hidden_size]
  std::unique_ptr<kernels::Weight> router;  ///< [num_experts, hidden_size]; null without experts
  std::vector<FfnWeights> experts;          ///< [num_experts]
  std::vector<float> post_ffn_norm;         ///< [hidden_size]

  [[nodiscard]] std::uint64_t bytes() const;
};

/// All weights of a rank, in the layout of the Ops that packed them.
struct ShardWeights {
  std::shared_ptr<const kernels::Weight> embedding;  ///< [vocab, hidden_size]; first stage only
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;  ///< [hidden_size]; last stage only
  /// [vocab, hidden_size]; last stage only; may be `embedding`.
  std::shared_ptr<const kernels::Weight> head;

  [[nodiscard]] std::uint64_t bytes() const;
};

/// Packs a rank's weights out of the mapped file, reading nothing outside its slices. `progress` is
/// called after every matrix with the part done, in bytes, from above 0 to 1. `spec` is read_spec's
/// of the same file.
[[nodiscard]] Result<ShardWeights> load_shard(const model::GgufFile& file,
                                              const model::ModelSpec& spec, const Shard& shard,
                                              kernels::Ops& ops,
                                              const std::function<void(float)>& progress);

}  // namespace brigade::worker
