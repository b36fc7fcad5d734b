// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/core/limits.h"
#include "router/core/output_stream.h"
#include "router/core/prefix_chain.h"
#include "router/core/stats.h"
#include "router/core/types.h"

namespace brigade::router {

enum class RequestPhase : std::uint8_t {
  kQueued,  ///< in the queue of its model
  kPlaced,  ///< on a replica
  kEnded,   ///< its last Output is out
};

/// Everything about an accepted request that outlives a replica: what is needed to go on elsewhere
/// from the token it had reached. Owned by the Ledger, at one address until it ends.
struct LiveRequest {
  RequestId id = 0;
  std::uint64_t order = 0;  ///< of acceptance: its age
  std::string tenant;
  std::size_t model_index = 0;
  std::shared_ptr<const ServedModel> model;
  wire::GenerationParams params;                     ///< as resolved by check_request
  std::vector<std::vector<std::int32_t>> bad_words;  ///< as token sequences
  std::uint64_t seed = 0;
  TimePoint deadline = kNever;
  RequestTimes times;

  bool is_open_ended = false;        ///< it names no max_tokens: as many as there is room for
  std::vector<std::int32_t> tokens;  ///< prompt, then output
  std::uint32_t num_prompt = 0;
  std::uint64_t group = 0;          ///< of choices of one prompt; 0: none
  PrefixChain chain;                ///< names of its whole blocks, output's included
  bool was_started = false;         ///< a step with it was issued, somewhere
  std::uint32_t cached_tokens = 0;  ///< of the prompt, that its first start found computed
  std::vector<wire::OutputToken> prompt_scores;  ///< while the prompt is being scored
  bool prompt_scored = false;                    ///< nothing (more) to score
  std::unique_ptr<OutputStream> stream;

  RequestPhase phase = RequestPhase::kQueued;
  ReplicaId replica = 0;   ///< when placed
  std::uint32_t slot = 0;  ///< when placed
  /// Tokens of output that its tenant was charged when the request was first taken from the queue.
  std::optional<std::uint64_t> charged_output;
  std::uint32_t num_fail_overs = 0;
  std::uint32_t num_preemptions = 0;

  [[nodiscard]] std::uint32_t max_tokens() const { return *params.max_tokens; }
  void set_max_tokens(std::uint32_t max_tokens) {
    params.max_tokens = max_tokens;
    stream->set_max_tokens(max_tokens);
  }
  [[nodiscard]] std::uint32_t num_output() const {
    return static_cast<std::uint32_t>(tokens.size()) - num_prompt;
  }
  [[nodiscard]] bool only_scores() const { return max_tokens() == 0; }
  /// Positions that must be computed before it ends, at most; the last prompt token of a scored
  /// prompt gives nothing.
  [[nodiscard]] std::uint32_t last_position() const {
    return only_scores() ? num_prompt - 1
                         : static_cast<std::uint32_t>(kv_tokens(num_prompt, max_tokens()));
  }
  /// Tokens it may still produce, of which so many are counted as work by queue and placement: few
  /// outputs are as long as they may be.
  [[nodiscard]] std::uint64_t expected_output() const {
    constexpr std::uint32_t kExpectedOutput = 128;
    return std::min(max_tokens() - std::min(num_output(), max_tokens()), kExpectedOutput);
  }
};

}  // namespace brigade::router
