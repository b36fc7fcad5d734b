// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <variant>

#include "common/base/bounded_queue.h"
#include "common/base/time.h"
#include "common/wire/messages.h"
#include "shard_worker/core/lifecycle.h"
#include "shard_worker/device/engine.h"
#include "shard_worker/pipeline/stage_link.h"
#include "shard_worker/process/abort_switch.h"
#include "shard_worker/process/epoch_runner.h"

namespace brigade::worker {

/// The step loop: one thread that owns the engine and the stage link, and does jobs and steps in
/// the order they come. Steps come straight from the router's socket thread and results go straight
/// back to it: no actor between.
///
/// It beats between steps and while loading, once a second until the router names an interval. A
/// loop that hangs beats no more, though its sockets still answer: that is how the router tells.
class EngineThread final {
 public:
  struct Options {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<StageLink> link;
    std::uint64_t memory_bytes = 0;
    std::uint64_t kv_memory_bytes = 0;  ///< 0: what of memory_bytes the weights leave
    bool spin = false;
    /// Both are called on the engine thread and must not block.
    std::function<void(wire::FromWorker)> to_router;
    std::function<void(EngineEvent)> on_event;
  };

  explicit EngineThread(Options options);
  /// Aborts what runs, and joins.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// From the socket thread. False when kMaxQueuedSteps wait already: the router has lost count.
  [[nodiscard]] bool push_step(wire::StepCommand command);
  /// From the actor.
  void push_job(EngineJob job);
  /// From any thread: ends what the epoch waits for.
  void abort(std::uint64_t epoch) { abort_.abort(epoch); }

  /// From any thread; kept within a tenth of a second and five.
  void set_beat_interval(Duration interval);

  static constexpr std::size_t kMaxQueuedSteps = 64;

 private:
  using Item = std::variant<wire::StepCommand, EngineJob>;

  void loop();
  void do_job(EngineJob& job);
  void load(LoadJob& job);
  void start(const StartJob& job);
  void stop(const StopJob& job);
  void run_step(const wire::StepCommand& command);
  /// Drops the epoch; tells the actor unless it was aborted, which the actor knows.
  void end_epoch(Status status);
  void beat_if_due();
  void send_stage_times();
  void count(const StepTimes& times);

  Options options_;
  BoundedQueue<Item> queue_;
  AbortSwitch abort_;
  std::atomic<Duration> beat_interval_{std::chrono::seconds(1)};
  // Of the thread alone.
  std::optional<wire::Assign> assign_;   ///< of the epoch under way
  std::unique_ptr<EpochRunner> runner_;  ///< between start and end
  std::uint64_t last_step_ = 0;
  TimePoint next_beat_{};
  wire::StageTimes stage_times_;  ///< since the last beat, where no results are sent
  std::thread thread_;
};

}  // namespace brigade::worker
