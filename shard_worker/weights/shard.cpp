// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/weights/shard.h"

#include "common/base/check.h"

namespace brigade::worker {

Shard make_shard(const model::ModelSpec& spec, const Range& layers, std::int64_t tp_rank,
                 std::int64_t tp_size) {
  INVARIANT(tp_rank >= 0 && tp_rank < tp_size) << tp_rank << " of " << tp_size;
  const model::TensorSplit split = model::split_tensors(spec, tp_size);
  const auto rank = static_cast<std::size_t>(tp_rank);
  const Range kv_heads = split.kv_heads[rank];
  const std::int64_t group = spec.num_heads / spec.num_kv_heads;
  return {.layers = layers,
          .kv_heads = kv_heads,
          .heads = {kv_heads.begin * group, kv_heads.end * group},
          .ffn = split.ffn[rank],
          .vocab = split.vocab[rank],
          .first_stage = layers.begin == 0,
          .last_stage = layers.end == spec.num_layers};
}

}  // namespace brigade::worker
