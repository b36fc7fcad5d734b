// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/router/core/support/world.h"

namespace brigade::bench {

using router::RequestId;
using router::testing::World;
using router::testing::WorldOptions;

/// Options of a world for measuring: no audits, no deadlines in the way, a context of
/// `max_context`.
[[nodiscard]] WorldOptions measuring_options(std::uint32_t num_stages, std::int64_t max_context);

/// Workers for so many replicas, all ready.
void bring_up(World& world, std::uint32_t num_replicas);

/// A greedy request that runs to its length; its prompt is drawn from `seed`.
[[nodiscard]] router::Request make_request(RequestId id, std::string tenant, std::size_t num_prompt,
                                           std::uint32_t max_tokens, std::uint64_t seed);

/// The value below which a fraction of them lies.
[[nodiscard]] double percentile(std::vector<double> values, double fraction);

[[nodiscard]] inline double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Calls submit(id) at random times, `rate` a second on average, from now for `duration`.
void arrive(World& world, double rate, Duration duration, std::uint64_t seed, RequestId first_id,
            std::function<void(RequestId)> submit);

}  // namespace brigade::bench
