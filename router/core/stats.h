// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/base/metrics.h"
#include "router/core/types.h"

namespace brigade::router {

/// When things happened to an accepted request; the epoch when they have not.
struct RequestTimes {
  TimePoint accepted{};
  TimePoint placed{};  ///< on its first replica
  TimePoint last_token{};
};

/// What the requests of one model came to, since the router's start.
struct ModelStats {
  static constexpr std::size_t kNumFinishes = 5;  ///< by wire::FinishReason
  static constexpr std::size_t kNumCodes = 11;    ///< by StatusCode

  Histogram time_to_first_token_s{kSecondsEdges};  ///< from acceptance
  Histogram inter_token_s{kSecondsEdges};
  Histogram request_s{kSecondsEdges};  ///< from acceptance to the end
  Histogram queue_s{kSecondsEdges};    ///< from acceptance to the first placement
  Histogram prompt_tokens{kTokenEdges};
  Histogram generation_tokens{kTokenEdges};
  std::uint64_t total_prompt_tokens = 0;  ///< of prompts that were computed
  std::uint64_t total_cached_tokens = 0;  ///< of those, found in the prefix cache
  std::uint64_t total_generation_tokens = 0;
  std::array<std::uint64_t, kNumFinishes> finished{};
  std::array<std::uint64_t, kNumCodes> failed{};   ///< accepted, and ended with an error
  std::array<std::uint64_t, kNumCodes> refused{};  ///< never accepted
  std::uint64_t preempted = 0;
  std::uint64_t failed_over = 0;

  std::uint64_t waiting = 0;  ///< now
  std::uint64_t running = 0;  ///< now
};

/// What /metrics tells of the router.
struct RouterMetrics {
  RouterStatus status;
  std::vector<ModelStats> models;  ///< in the order of the served models
  /// Refused because they named no model that is served.
  std::uint64_t unknown_model = 0;
};

}  // namespace brigade::router
