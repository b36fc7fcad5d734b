// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "router/core/admission.h"
#include "router/core/cluster.h"
#include "router/core/dispatcher.h"
#include "router/core/drain_rate.h"
#include "router/core/fair_queue.h"
#include "router/core/ledger.h"
#include "router/core/replica.h"
#include "router/core/router.h"

namespace brigade::router {

/// The parts and how events go through them. Each public event ends with pump(), which forms
/// replicas, places what is queued, and plans steps, until nothing changes.
struct Router::Impl final : ResultSink {
  Impl(RouterConfig router_config, Cluster::Models served_models);

  // router_submit.cpp: clients
  void submit(Request request, TimePoint now);
  /// Whether there is a replica to wait for.
  Status check_serving(const Request& request, std::size_t model_index,
                       std::uint32_t& retry_after_s) const;
  Status check_room(const LiveRequest& request, TimePoint now, std::uint32_t& retry_after_s);
  std::unique_ptr<LiveRequest> make_request(Request&& request, std::size_t model_index,
                                            wire::GenerationParams params, TimePoint now) const;
  [[nodiscard]] std::int64_t max_kv_tokens(std::size_t model_index) const;
  [[nodiscard]] Slots slots_of(std::size_t model_index) const;
  /// From its first token to its last: as many as answers have had, or as it may have if that is
  /// less, at the pace of tokens so far. Nothing before the first ones.
  [[nodiscard]] std::optional<double> expected_service_s(const LiveRequest& request) const;
  [[nodiscard]] std::uint64_t queued_requests() const;
  [[nodiscard]] std::uint64_t queued_tokens() const;
  [[nodiscard]] QueueItem queue_item(const LiveRequest& request, TimePoint now) const;
  void requeue(LiveRequest& request, TimePoint now);
  /// Takes the request off queue or replica and ends it.
  void end(LiveRequest& request, wire::FinishReason finish, Status status,
           std::uint32_t retry_after_s = 0);

  // router_events.cpp: workers and time
  void on_message(WorkerId worker, wire::FromWorker message, TimePoint now);
  void on_result(WorkerId worker, const wire::StepResult& result, TimePoint now);
  void end_expired(LiveRequest& request);
  void advance(TimePoint now);
  void pump(TimePoint now);
  void apply_cluster_events(TimePoint now);
  void replica_ready(const ClusterEvent& event);
  void replica_down(const ClusterEvent& event, TimePoint now);
  void end_if_hopeless(std::size_t model_index);
  void settle_ended();
  void dispatch(std::size_t model_index, TimePoint now);
  std::optional<std::uint64_t> offer(const QueueItem& item, Placement& placement, TimePoint now);
  void place(LiveRequest& request, Replica* replica, TimePoint now);
  bool plan_dirty(TimePoint now);
  void release_drained();

  void on_prompt_scored(LiveRequest& request) override;
  void on_sampled(LiveRequest& request, wire::OutputToken token) override;
  void on_fault(LiveRequest& request, Status status) override;

  const RouterConfig config;
  const Cluster::Models models;
  Ledger ledger;
  std::vector<FairQueue> queues;  ///< [models]
  Cluster cluster;
  std::map<ReplicaId, std::unique_ptr<Replica>> replicas;  ///< ready or draining ones
  PlacementTargets targets;                                ///< the same ones
  std::vector<std::string> last_loss;                      ///< [models] how its last replica went
  std::set<ReplicaId> dirty;                               ///< may have a step to plan
  HotPrefixes hot_prefixes;
  std::vector<DrainRate> drain_rates;  ///< [models]
  Actions actions;
  bool closed = false;
  std::optional<Trace> trace;
};

}  // namespace brigade::router
