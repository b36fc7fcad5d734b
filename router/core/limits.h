// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "router/core/types.h"

namespace brigade::router {

inline constexpr std::int32_t kMaxLogprobs = 20;
inline constexpr std::size_t kMaxStopStrings = 16;
inline constexpr std::size_t kMaxStopBytes = 256;
inline constexpr std::size_t kMaxStopTokens = 256;
inline constexpr std::size_t kMaxTenantBytes = 256;
inline constexpr float kMaxTemperature = 2.0F;
/// Priorities are in [-100, 100]: what is least urgent still gets its turn before a deadline.
inline constexpr std::int32_t kMaxPriority = 100;
inline constexpr float kMinRepetitionPenalty = 0.01F;
inline constexpr float kMaxRepetitionPenalty = 100.0F;
inline constexpr float kMaxPenalty = 2.0F;  ///< presence and frequency, either way
inline constexpr float kMaxBias = 100.0F;   ///< either way
inline constexpr std::size_t kMaxBiases = 1024;
inline constexpr std::size_t kMaxAllowedTokens = 16384;
inline constexpr std::size_t kMaxBadWords = 128;
inline constexpr std::size_t kMaxBadWordBytes = 256;

/// Checks a request against the model it names, once for every door, and gives its parameters in
/// the form the rest works with: max_tokens set, temperature 0 where the choice is greedy (below
/// 1e-5, or top_p 0), top_p in (0, 1], top_k in [0, vocab_size), allowed_token_ids distinct and
/// ascending. kInvalidArgument begins with the field, as `field: ` or `field[i]: `, and says its
/// value and what is allowed; what is over the context says "maximum context length", which clients
/// look for.
///
/// `max_kv_tokens`: the most tokens that a sequence can hold on any replica there is; 0 when not
/// known yet.
[[nodiscard]] Result<wire::GenerationParams> check_request(const Request& request,
                                                           const ServedModel& model,
                                                           std::int64_t max_kv_tokens);

/// Positions of KV that a sequence writes: the last token of the output is never fed back.
[[nodiscard]] constexpr std::int64_t kv_tokens(std::int64_t num_prompt, std::int64_t max_tokens) {
  return max_tokens == 0 ? num_prompt : num_prompt + max_tokens - 1;
}

}  // namespace brigade::router
