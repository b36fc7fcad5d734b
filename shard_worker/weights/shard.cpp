// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/weights/shard.h"

#include "common/base/check.h"

namespace brigade::worker {

Shard make_shard(const model::ModelSpec& spec, const Range& layers, std::int64_t tp_rank,
                 std::int64_t tp_size) {
  INVARIANT(tp_rank >= 0 && tp_rank < tp_size) << tp_rank << " of " << tp_size;
  const model::TensorSplit split = model::split_tensors(spec, tp_size);
  const auto rank = static_cast<std::size_t>(tp_rank);
  return {.layers = layers,
          .kv_heads = split.kv_heads[rank],
          .heads = split.heads[rank],
          .ffn = split.ffn[rank],
          .expert_ffn = split.expert_ffn.empty() ? Range{} : split.expert_ffn[rank],
          .vocab = split.vocab[rank],
          .first_stage = layers.begin == 0,
          .last_stage = layers.end == spec.num_layers,
          .first_rank = tp_rank == 0};
}

}  // namespace brigade::worker
