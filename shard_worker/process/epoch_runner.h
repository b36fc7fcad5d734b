// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/wire/messages.h"
#include "shard_worker/collectives/collective.h"
#include "shard_worker/core/last_samples.h"
#include "shard_worker/core/link_plan.h"
#include "shard_worker/core/sequence_table.h"
#include "shard_worker/device/engine.h"
#include "shard_worker/pipeline/stage_link.h"
#include "shard_worker/process/abort_switch.h"

namespace brigade::worker {

/// Where a step's time went, on this rank.
struct StepTimes {
  Duration wait{};     ///< for activations, samples and the other ranks, before computing
  Duration compute{};  ///< the engine, collectives included
  Duration link{};     ///< handing activations and samples on
};

/// One rank's steps in one epoch: what stands between a StepCommand and the engine. Lives on the
/// engine thread.
class EpochRunner final {
 public:
  struct Options {
    wire::Assign assign;
    std::uint64_t num_kv_blocks = 0;
    bool spin = false;
  };

  /// Allocates KV, joins the TP group and opens the stage links: when it returns, every peer is
  /// there too. Ends early when `abort` is thrown. `engine` (loaded for this assign) and `link`
  /// outlive the runner.
  static Result<std::unique_ptr<EpochRunner>> start(Options options, Engine& engine,
                                                    StageLink& link, AbortSwitch& abort);
  ~EpochRunner();
  EpochRunner(const EpochRunner&) = delete;
  EpochRunner& operator=(const EpochRunner&) = delete;

  /// Runs one step. Gives the router's result on tp_rank 0 of the last stage, when samples have
  /// gone to stage 0; nothing on other ranks. After an error the epoch is over.
  Result<std::optional<wire::StepResult>> run(const wire::StepCommand& command);

  [[nodiscard]] const StepTimes& times() const { return times_; }
  [[nodiscard]] bool reports_results() const { return plan_.last_stage() && plan_.tp_rank == 0; }

 private:
  EpochRunner(Options options, Engine& engine, StageLink& link, AbortSwitch& abort, LinkPlan plan);
  Status join();
  Result<std::unique_ptr<Collective>> join_group(TimePoint deadline);
  [[nodiscard]] TimePoint deadline() const { return Clock::now() + timeout_; }
  Status get_ready(const wire::StepCommand& command);
  Status fill_pending();
  Status share_pending();
  Status hand_on();
  [[nodiscard]] wire::StepResult make_result() const;

  Options options_;
  Engine& engine_;
  StageLink& link_;
  AbortSwitch& abort_;
  LinkPlan plan_;
  Duration timeout_;
  SequenceTable table_;
  LastSamples samples_;
  std::unique_ptr<Collective> group_;
  StepInputs inputs_;
  std::vector<float> hidden_;  ///< [num_tokens, hidden_size] of the step under way
  std::vector<ScoredToken> scored_;
  wire::SampledTokens sampled_;
  std::vector<std::int32_t> pending_;  ///< tokens of inputs_.pending_tokens, when ranks share them
  StepTimes times_;
};

}  // namespace brigade::worker
