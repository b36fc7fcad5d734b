// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "router/core/stats.h"
#include "router/core/trace.h"
#include "router/core/types.h"

namespace brigade::router {

struct RouterConfig {
  std::uint32_t tp_size = 1;
  std::uint32_t pp_size = 1;
  /// 0: as many as the workers give; else further workers stand by.
  std::uint32_t max_replicas = 0;
  wire::ActivationMode activations = wire::ActivationMode::kInt8;
  wire::KvType kv_type = wire::KvType::kF16;
  std::uint64_t max_kv_blocks = 0;  ///< a replica; 0: as many as fit its smallest rank

  std::uint32_t step_tokens = 256;  ///< token budget of a step: decodes first, then prefill chunks
  std::uint32_t max_seqs = 256;     ///< sequences running on a replica
  bool prefix_cache = true;         ///< KV of requests that have ended serves later ones
  /// Uncached prompt tokens; one more bucket above.
  std::vector<std::uint32_t> bucket_edges = {128, 512, 2048};
  /// Each step of priority is worth so long a wait; and a request that has waited so long without
  /// fitting anywhere has a replica kept for it.
  Duration queue_ageing = std::chrono::seconds(2);
  std::uint64_t max_queued_requests = 8192;
  std::uint64_t max_queued_tokens = 16'000'000;
  std::uint64_t max_queued_requests_per_tenant = 4096;
  std::uint64_t max_queued_tokens_per_tenant = 8'000'000;
  /// Who would wait longer, by the measured drain rate, is refused.
  Duration max_queue_delay = std::chrono::seconds(30);
  /// A tenant refused for that is overloaded: who would wait for longer than an eighth of what runs
  /// takes to be placed is refused too (standing_bound), until its queue has been empty for a third
  /// of this.
  Duration overload_calm = std::chrono::seconds(2);
  /// What a tenant gets while others wait too, beside the 1 of those that are not listed.
  std::map<std::string, std::uint32_t> tenant_weights;

  Duration default_deadline = std::chrono::seconds(600);
  /// A rank silent for longer between steps is lost; inside a step step_timeout bounds it.
  Duration heartbeat_timeout = std::chrono::seconds(10);
  Duration load_timeout = std::chrono::seconds(300);
  /// A replica that owes a result for longer is torn down.
  Duration step_timeout = std::chrono::seconds(60);
  std::uint32_t collective_timeout_ms = 30000;
  std::uint32_t max_fail_overs = 3;  ///< of one request
  wire::SimCost sim;

  std::string schema_hash;  ///< that workers must have; empty: that of the first one
  /// Mixed into the seeds of requests that bring none: random at each start of the router.
  std::uint64_t seed = 0;
};

/// The whole mind of the router, pure and deterministic: events and `now` in, actions out. No
/// clock, thread, socket, actor or unordered iteration. It owns every request (Ledger), the queues,
/// every replica's plan and KV blocks, and the membership of workers (Cluster).
///
/// After any call, take_actions() gives what must be sent, in order. advance() must be called at
/// next_wake() at the latest. Exactly one Output with a finish reason comes for each submitted
/// request, refused ones included.
class Router final {
 public:
  /// `trace`, if any, is given all that goes in and comes out.
  Router(RouterConfig config, std::vector<std::shared_ptr<const ServedModel>> models,
         Trace::Sink trace = nullptr);
  ~Router();

  // Clients.
  void submit(Request request, TimePoint now);
  /// Ends the request with kCancelled unless it has ended: then nothing happens. Its blocks return
  /// within a step.
  void cancel(RequestId request, TimePoint now);

  // Workers.
  void on_message(WorkerId worker, wire::FromWorker message, TimePoint now);
  /// The connection or process is gone.
  void on_worker_lost(WorkerId worker, const std::string& reason, TimePoint now);

  // Operators.
  /// Places nothing more on the replica, lets its requests finish, then releases its workers.
  Status drain(ReplicaId replica, TimePoint now);
  /// Refuse new requests from now on (shutdown); running ones go on.
  void close(TimePoint now);

  // Time.
  void advance(TimePoint now);
  [[nodiscard]] TimePoint next_wake() const;

  [[nodiscard]] Actions take_actions();
  [[nodiscard]] RouterStatus status() const;
  [[nodiscard]] RouterMetrics metrics() const;
  /// Of each accepted request that has not ended, in order of ids. Linear in requests and replicas.
  [[nodiscard]] std::vector<RequestView> requests() const;
  /// At least one replica is ready.
  [[nodiscard]] bool ready() const;

  /// Checks every invariant of the ledger, the queue and the blocks (tests, and debug builds after
  /// each event): each request in one place, each block free, owned or in flight, counts that add
  /// up. INVARIANT on failure.
  void audit() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::router
