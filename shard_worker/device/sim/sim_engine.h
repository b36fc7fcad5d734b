// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shard_worker/device/engine.h"

/// make_sim_engine() (engine.h): a device without weights. It sleeps for as long as SimCost says,
/// in place of computing, and draws each token from the one before it and its position alone: the
/// same sequence gets the same tokens in any batch, chunking, grid and replica. Activations carry
/// (token, position) of every row, spread over the ranks before each all-reduce, so a message lost,
/// swapped or summed wrongly on the way shows as kDataLoss.
namespace brigade::worker {

/// Tokens come from [kSimFirstToken, kSimFirstToken + kSimNumTokens): past the special tokens and
/// single bytes, among the first merges of byte-level vocabularies, which are ordinary pieces of
/// text.
inline constexpr std::int32_t kSimFirstToken = 300;
inline constexpr std::int32_t kSimNumTokens = 2048;
/// What a simulated device says that a KV block of one layer takes.
inline constexpr std::uint64_t kSimBlockBytes = 1024;

/// The token at `position` after `previous`; `attempt` counts banned ones.
[[nodiscard]] std::int32_t sim_token(std::int32_t previous, std::uint32_t position,
                                     std::uint32_t attempt = 0);

/// Of a stage's jitter: its ranks take equally long, other stages and replicas do not.
[[nodiscard]] std::uint64_t sim_seed(std::uint32_t replica, std::uint32_t pp_stage);

/// How long one rank takes for a step: all of base_us, and the share of the rest that its layers
/// are of all layers, over its TP group. At most a minute, never negative, whatever the numbers.
[[nodiscard]] Duration sim_step_time(const wire::SimCost& cost, double share,
                                     std::int64_t num_tokens, std::int64_t num_context_tokens,
                                     std::uint64_t seed, std::uint64_t step);

}  // namespace brigade::worker
