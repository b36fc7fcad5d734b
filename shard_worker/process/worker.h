// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/net/context.h"
#include "shard_worker/actors/worker_actor.h"
#include "shard_worker/device/engine.h"
#include "shard_worker/process/engine_thread.h"
#include "shard_worker/process/options.h"
#include "shard_worker/process/router_link.h"

namespace brigade::worker {

/// A worker process's parts and their order of life: the socket thread to the router, the actor,
/// the engine thread with the stage link.
///
///     router --> RouterLink --steps--> EngineThread --results--> RouterLink --> router
///                    \--life cycle--> WorkerActor --jobs--> EngineThread
class Worker final {
 public:
  /// Binds the stage link; nothing runs yet. Fails when an option or an address is
  /// no good.
  static Result<std::unique_ptr<Worker>> make(const WorkerOptions& options,
                                              std::unique_ptr<Engine> engine);
  /// Leaves nothing behind: threads, shared memory, socket file.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Joins the router and serves until it is released or stop() is called; returns why it ended.
  std::string run();
  /// From any thread: says goodbye and ends run().
  void stop(const std::string& reason);
  /// The socket file of the stage link, for an end without a destructor to remove.
  [[nodiscard]] const std::string& ipc_path() const { return ipc_path_; }

 private:
  explicit Worker(const std::string& runtime_dir);
  [[nodiscard]] wire::Hello make_hello(const WorkerOptions& options, const StageLink& link) const;
  void take_step(wire::StepCommand command);

  const std::uint64_t incarnation_;
  const std::string ipc_path_;
  std::promise<std::string> left_;
  std::future<std::string> leaving_ = left_.get_future();
  net::Context context_;
  // Destroyed in reverse: the engine thread first, then the actor it tells, then the link to the
  // router they both use.
  std::unique_ptr<RouterLink> router_;
  std::unique_ptr<WorkerActor> actor_;
  std::unique_ptr<EngineThread> engine_;
};

}  // namespace brigade::worker
