// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/partition.h"
#include "common/model/spec.h"

namespace brigade::worker {

/// The part of a model that one rank holds: its stage's layers, and of each layer its TP share.
struct Shard {
  Range layers;
  Range kv_heads;
  Range heads;  ///< those of them that read kv_heads here
  Range ffn;
  Range expert_ffn;  ///< of each expert; empty without experts
  Range vocab;
  bool first_stage = false;  ///< holds the embedding table's rows `vocab`
  bool last_stage = false;   ///< holds the head's rows `vocab` and the last norm
  bool first_rank = false;   ///< adds the biases of what is summed over the ranks

  friend bool operator==(const Shard&, const Shard&) = default;
};

/// The share of tp_rank in a stage of tp_size ranks with these layers. The grid must have passed
/// model::check_grid.
[[nodiscard]] Shard make_shard(const model::ModelSpec& spec, const Range& layers,
                               std::int64_t tp_rank, std::int64_t tp_size);

}  // namespace brigade::worker
