// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/time.h"
#include "router/core/live_request.h"

namespace brigade::router {

/// A slot of a replica and the request that runs in it. `request` is null once the request has
/// ended or moved away; the slot is then in use until its last step in flight has ended.
///
///     position  0 ........ prefill_end ..... scheduled ........ last_position
///               prompt (and replayed output) | next step starts here
struct Sequence {
  LiveRequest* request = nullptr;
  RequestId id = 0;  ///< owner of the blocks
  bool in_use = false;
  bool admit_sent = false;
  bool scoring = false;               ///< the prompt's log-probabilities are asked for
  std::optional<std::uint32_t> lane;  ///< from its first decode on
  /// Not planned until its steps are back; then in this lane.
  std::optional<std::uint32_t> moving_to;
  std::uint32_t prefill_end = 0;    ///< positions before it are fed from known tokens, in chunks
  std::uint32_t scheduled = 0;      ///< positions before it are in steps that were issued
  std::uint32_t last_position = 0;  ///< positions from here on are never computed
  std::uint32_t num_known = 0;      ///< the request's tokens, output included
  std::uint32_t samples_in_flight = 0;
  std::uint32_t steps_in_flight = 0;
  std::uint64_t last_step = 0;
  std::uint64_t expected_output = 0;  ///< as counted in the replica's load
  std::vector<std::uint32_t> blocks;  ///< block table
  /// Leading blocks that it did not fill itself: it starts after them, once they are filled.
  std::uint32_t num_shared = 0;
  std::uint32_t num_filled = 0;  ///< leading blocks that are filled, and named where they can be
  std::uint64_t group = 0;       ///< of the request
  /// It starts with the last prompt token alone: the block with the prompt's end is a copy of its
  /// group's.
  bool forked = false;
  std::uint32_t num_blocks_sent = 0;

  [[nodiscard]] bool ready() const { return request != nullptr && !moving_to; }
  [[nodiscard]] std::uint32_t prefill_left() const {
    return scheduled < prefill_end ? prefill_end - scheduled : 0;
  }
  [[nodiscard]] bool can_prefill() const { return ready() && scheduled < prefill_end; }
  /// The next position is one that a sample fills, known or in flight.
  [[nodiscard]] bool can_decode() const {
    return ready() && scheduled >= prefill_end && scheduled < last_position &&
           scheduled < num_known + samples_in_flight;
  }
  /// In tokens of context: what its decodes take of a step, attention over about 1,000 tokens as
  /// much as the rest of a row.
  [[nodiscard]] std::uint64_t cost() const {
    return 1024 + std::uint64_t{std::max(scheduled, prefill_end)};
  }
  [[nodiscard]] bool has_block_for_next() const {
    return scheduled / wire::kBlockSize < blocks.size();
  }
};

/// What the choices of one prompt share beyond its whole blocks: the one with the prompt's end.
/// Each copies it before it writes there.
struct Fork {
  std::optional<std::uint32_t> block;  ///< held once by the fork itself
  std::optional<RequestId> writer;     ///< who is to fill it; none: it is filled
  std::array<std::int32_t, wire::kBlockSize> tokens = {};  ///< of the prompt in it
  std::uint32_t num_prompt = 0;
  std::uint32_t num_members = 0;  ///< sequences of the group that are here
  std::uint64_t last_copy = 0;    ///< step
};

/// A step that was issued and whose result is owed.
struct FlightStep {
  struct Item {
    std::uint32_t slot = 0;
    std::uint32_t position = 0;  ///< of its first token
    std::uint32_t num_tokens = 0;
    std::uint8_t flags = 0;     ///< wire::StepFlags
    bool has_next = false;      ///< its last row scores a prompt token too
    bool ends_scoring = false;  ///< the prompt is scored when this step has ended

    /// Entries of prompt tokens that the result must have for it.
    [[nodiscard]] std::uint32_t num_scored() const {
      return (flags & wire::kScorePrompt) == 0 ? 0 : num_tokens - (has_next ? 0 : 1);
    }
    [[nodiscard]] bool samples() const { return (flags & wire::kSampleToken) != 0; }
  };
  std::uint64_t step = 0;
  std::uint32_t lane = 0;
  std::uint64_t plan_hash = 0;
  TimePoint issued;
  std::uint32_t num_decodes = 0;
  std::uint32_t num_prefill_rows = 0;
  std::vector<Item> items;
};

}  // namespace brigade::router
