// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/wire/messages.h"

namespace brigade::worker {

enum class WorkerState : std::uint8_t { kIdle, kLoading, kLoaded, kStarting, kReady, kLeaving };

[[nodiscard]] std::string_view to_string(WorkerState state);

// ---- what the engine thread is told; in order ----

struct LoadJob {
  wire::Assign assign;
};
struct StartJob {
  std::uint64_t epoch = 0;
  std::uint64_t num_kv_blocks = 0;
};
/// Forget the epoch: group and links are dropped, weights stay.
struct StopJob {
  std::uint64_t epoch = 0;
};
using EngineJob = std::variant<LoadJob, StartJob, StopJob>;

// ---- what the engine thread tells ----

struct LoadProgressed {
  std::uint64_t epoch = 0;
  float fraction = 0;
};
struct LoadDone {
  std::uint64_t epoch = 0;
  std::uint64_t max_kv_blocks = 0;
  std::uint64_t weight_bytes = 0;
};
struct StartDone {
  std::uint64_t epoch = 0;
};
/// Loading, starting or a step failed: the engine thread has already dropped the epoch.
struct EpochFailed {
  std::uint64_t epoch = 0;
  Status status;
};
using EngineEvent = std::variant<LoadProgressed, LoadDone, StartDone, EpochFailed>;

// ---- what the shell must do, in order ----

struct SendToRouter {
  wire::FromWorker message;
};
struct RunJob {
  EngineJob job;
};
/// End what the engine thread waits for in this epoch, at once (before its StopJob comes up in the
/// queue).
struct AbortEpoch {
  std::uint64_t epoch = 0;
};
struct LeaveProcess {
  std::string reason;
};
using LifecycleAction = std::variant<SendToRouter, RunJob, AbortEpoch, LeaveProcess>;

/// The life of a worker between its router and its engine thread: hello -> assign -> loading ->
/// loaded -> start -> ready -> abort (idle again, weights kept) or release (goodbye). Pure: events
/// in, actions out. Events of an epoch that is over change nothing.
class Lifecycle final {
 public:
  /// The router is away: the epoch ends, weights stay.
  void on_router_lost();
  /// What the router sent; StepCommands go to the engine thread directly and change nothing here.
  void on_message(const wire::ToWorker& message);
  void on_engine(const EngineEvent& event);
  /// The process was told to end.
  void on_stop(const std::string& reason);

  [[nodiscard]] std::vector<LifecycleAction> take_actions();
  [[nodiscard]] WorkerState state() const { return state_; }
  /// 0 when idle.
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

 private:
  void on_assign(const wire::Assign& assign);
  void on_start(const wire::Start& start);
  void leave(const std::string& reason);
  void end_epoch();
  void send(wire::FromWorker message) { actions_.push_back(SendToRouter{std::move(message)}); }

  WorkerState state_ = WorkerState::kIdle;
  std::uint64_t epoch_ = 0;
  std::uint64_t max_kv_blocks_ = 0;  ///< as told in Loaded
  std::vector<LifecycleAction> actions_;
};

}  // namespace brigade::worker
