// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/wire/messages.h"
#include "shard_worker/core/lifecycle.h"

namespace brigade::worker {

/// The actor `worker`: Lifecycle behind a mailbox, so that the socket thread, the engine thread and
/// the process's guardian can all tell it things without knowing of each other. Nothing of a step
/// passes through it.
class WorkerActor final {
 public:
  /// Called from the actor's thread; must not block.
  struct Sinks {
    std::function<void(wire::FromWorker)> to_router;
    std::function<void(EngineJob)> to_engine;
    std::function<void(std::uint64_t)> abort_epoch;
    std::function<void(const std::string&)> on_leave;  ///< goodbye is on its way: end the process
  };

  explicit WorkerActor(Sinks sinks);
  /// Ends the actor at once, whatever waits in its mailbox.
  ~WorkerActor();
  WorkerActor(const WorkerActor&) = delete;
  WorkerActor& operator=(const WorkerActor&) = delete;

  // From any thread.
  void on_message(wire::ToWorker message);
  void on_engine(EngineEvent event);
  void on_router_lost();
  void on_stop(std::string reason);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::worker
