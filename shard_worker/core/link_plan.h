// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/wire/messages.h"

namespace brigade::worker {

/// A rank that this one sends to.
struct LinkPeer {
  std::uint32_t stage = 0;
  std::uint32_t tp_rank = 0;
  std::string endpoint;  ///< ipc on the same host, else tcp
  std::string key;       ///< public, of its link; empty: it asks for none
};

/// Who sends what to whom, as one rank sees it. Activations: rank q of a stage gets them from rank
/// q mod tp_size of the stage before, so stages of unequal width chain (activations are whole on
/// every rank):
///
///     tp_size 1 -> 3:  0 -> 0, 1, 2        3 -> 2:  0 -> 0, 1 -> 1 (2 sends nothing)
///
/// Samples: tp_rank 0 of the last stage, the only one that draws, sends them to every rank of stage
/// 0.
struct LinkPlan {
  std::uint64_t epoch = 0;
  std::uint32_t stage = 0;
  std::uint32_t tp_rank = 0;
  std::uint32_t num_stages = 1;
  std::uint32_t hidden_size = 0;
  std::uint32_t max_step_tokens = 0;
  std::optional<std::uint32_t> hidden_from;  ///< tp_rank in stage - 1; absent on stage 0
  std::vector<LinkPeer> hidden_to;           ///< ranks of stage + 1
  std::vector<LinkPeer> samples_to;          ///< ranks of stage 0; of the last stage's rank 0 alone

  [[nodiscard]] bool first_stage() const { return stage == 0; }
  [[nodiscard]] bool last_stage() const { return stage + 1 == num_stages; }
  /// Samples come over the link: a pipeline of one stage keeps them in the process.
  [[nodiscard]] bool gets_samples() const { return first_stage() && num_stages > 1; }
};

/// kInvalidArgument when a peer has no endpoint that can be reached from here.
[[nodiscard]] Result<LinkPlan> make_link_plan(const wire::Assign& assign, std::int64_t hidden_size);

}  // namespace brigade::worker
