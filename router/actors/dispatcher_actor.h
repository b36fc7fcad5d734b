// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "common/actor/system.h"
#include "router/actors/inbox.h"
#include "router/actors/worker_door.h"
#include "router/api/service.h"
#include "router/core/router.h"

namespace brigade::router {

// What the dispatcher is told.
struct SubmitEvent {
  Request request;
  std::shared_ptr<OutputSink> sink;
};
struct CancelEvent {
  RequestId request = 0;
};
struct WorkerMessageEvent {
  WorkerId worker = 0;
  wire::FromWorker message;
  TimePoint received{};
};
struct WorkerLostEvent {
  WorkerId worker = 0;
  std::string reason;
};
struct StatusEvent {
  std::function<void(RouterStatus)> done;
};
struct MetricsEvent {
  std::function<void(RouterMetrics)> done;
};
struct DrainEvent {
  ReplicaId replica = 0;
  std::function<void(Status)> done;
};
/// Refuse new requests; running ones go on.
struct CloseEvent {};
/// End all running requests.
struct CancelAllEvent {};
using DispatcherEvent =
    std::variant<SubmitEvent, CancelEvent, WorkerMessageEvent, WorkerLostEvent, StatusEvent,
                 MetricsEvent, DrainEvent, CloseEvent, CancelAllEvent>;

/// What other threads may read of the dispatcher, and wait for.
class DispatcherView final {
 public:
  void set(std::uint32_t ready_replicas, bool ready);
  void add_request();
  void end_requests(std::uint64_t count);

  [[nodiscard]] bool ready() const;
  [[nodiscard]] std::uint32_t ready_replicas() const;
  /// True when every request has ended, false at the deadline.
  [[nodiscard]] bool wait_idle(TimePoint deadline) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint32_t ready_replicas_ = 0;
  bool ready_ = false;
  std::uint64_t requests_ = 0;
};

struct DispatcherOptions {
  RouterConfig config;
  std::vector<std::shared_ptr<const ServedModel>> models;
  std::size_t max_events = 1 << 16;
  /// Called from the actor: false when the door's outbox is full.
  std::function<bool(std::vector<WorkerSend>&)> send;
  /// Called from the actor after the number of ready replicas has changed.
  std::function<void()> on_replicas;
  Trace::Sink trace;  ///< called from the actor; null: no trace
};

/// The actor that owns the router's core. One actor for the queues, all replicas and the cluster: a
/// plan takes microseconds, so one thread plans for many replicas, and one owner makes the core's
/// determinism hold in production too. (When planning fills a core, a replica's planning can move
/// to an actor of its own.)
class DispatcherActor final {
 public:
  DispatcherActor(actor::System& system, DispatcherOptions options);
  /// Ends the actor; what waits in the inbox is dropped.
  ~DispatcherActor();

  /// False when the inbox is full.
  [[nodiscard]] bool post(DispatcherEvent event);
  void post_always(DispatcherEvent event);
  [[nodiscard]] bool congested() const;
  [[nodiscard]] const DispatcherView& view() const;
  [[nodiscard]] DispatcherView& view();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::router
