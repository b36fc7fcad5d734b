// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::wire {

/// Added to a token's logit.
struct TokenBias {
  std::int32_t token = 0;
  float bias = 0;
};

/// How to generate: shared by every door, the router and the client libraries. Bounds are checked
/// by router/core/limits.h, once, for all doors.
struct GenerationParams {
  float temperature = 1.0F;  ///< 0 = greedy
  float top_p = 1.0F;
  std::int32_t top_k = 0;  ///< 0 or -1 = all
  std::optional<std::uint64_t> seed;
  std::optional<std::uint32_t> max_tokens;  ///< absent: as many as the context allows
  std::uint32_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop;  ///< stop strings, not part of the output
  std::vector<std::int32_t> stop_token_ids;
  std::int32_t num_logprobs = -1;         ///< -1 none, 0 the token's own, up to 20 best
  std::int32_t num_prompt_logprobs = -1;  ///< as above, for the prompt's tokens
  std::uint32_t deadline_ms = 0;          ///< from acceptance; 0 = the router's default
  /// Lower goes first, as in vLLM; among the requests of one tenant only.
  std::int32_t priority = 0;
  float min_p = 0;               ///< least probability, as a share of the likeliest token's
  float typical_p = 1;           ///< locally typical sampling: this much probability; 1 = all
  float repetition_penalty = 1;  ///< of tokens in prompt or output; above 1 makes them rarer
  float presence_penalty = 0;    ///< once, of tokens in the output
  float frequency_penalty = 0;   ///< each time that a token is in the output
  std::vector<TokenBias> logit_bias;
  std::vector<std::int32_t> allowed_token_ids;  ///< empty = all
  std::vector<std::string> bad_words;           ///< token sequences that must not come out
  bool include_stop_str = false;     ///< the stop string or stop token's text ends the output
  bool keep_special_tokens = false;  ///< special tokens show in the output's text
};

struct TokenLogprob {
  std::int32_t token = 0;
  float logprob = 0;
};

/// A token that came out, or (echo) a prompt token that was scored.
struct OutputToken {
  std::int32_t token = 0;
  /// Natural log; absent when not asked for, or for a prompt's first token.
  std::optional<float> logprob;
  std::vector<TokenLogprob> top;  ///< best first
};

enum class FinishReason : std::uint8_t {
  kNone = 0,    ///< not finished
  kStop = 1,    ///< end token, stop token or stop string
  kLength = 2,  ///< max_tokens or context
  kCancelled = 3,
  kError = 4,  ///< see the status
};

[[nodiscard]] constexpr std::string_view to_string(FinishReason reason) {
  constexpr std::string_view kNames[] = {"none", "stop", "length", "cancelled", "error"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace brigade::wire
