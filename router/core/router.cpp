// SPDX-License-Identifier: Apache-2.0
#include "router/core/router.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "router/core/planted_bug.h"
#include "router/core/router_impl.h"

namespace brigade::router {

Router::Impl::Impl(RouterConfig router_config, Cluster::Models served_models)
    : config(std::move(router_config)),
      models(std::move(served_models)),
      ledger(models.size()),
      cluster(config, models) {
  for (std::size_t i = 0; i < models.size(); ++i) {
    queues.emplace_back(FairQueue::Options{.bucket_edges = config.bucket_edges,
                                           .ageing = config.queue_ageing,
                                           .weights = config.tenant_weights,
                                           .calm = config.overload_calm});
    drain_rates.emplace_back();
    last_loss.emplace_back("no replica came up");
  }
}

Router::Router(RouterConfig config, std::vector<std::shared_ptr<const ServedModel>> models,
               Trace::Sink trace)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(models))) {
  if (trace == nullptr) return;
  impl_->trace.emplace(std::move(trace));
  impl_->trace->begin(impl_->config, impl_->models);
}

Router::~Router() = default;

void Router::submit(Request request, TimePoint now) {
  impl_->ledger.set_now(now);
  if (impl_->trace) impl_->trace->submit(request, now);
  impl_->submit(std::move(request), now);
  impl_->pump(now);
}

void Router::cancel(RequestId request, TimePoint now) {
  impl_->ledger.set_now(now);
  if (impl_->trace) impl_->trace->cancel(request, now);
  LiveRequest* live = impl_->ledger.find(request);
  if (live == nullptr) return;
  impl_->end(*live, wire::FinishReason::kCancelled, cancelled("cancelled by its client"));
  impl_->pump(now);
}

void Router::on_message(WorkerId worker, wire::FromWorker message, TimePoint now) {
  impl_->ledger.set_now(now);
  if (impl_->trace) impl_->trace->message(worker, message, now);
  impl_->on_message(worker, std::move(message), now);
  impl_->pump(now);
}

void Router::on_worker_lost(WorkerId worker, const std::string& reason, TimePoint now) {
  impl_->ledger.set_now(now);
  if (impl_->trace) impl_->trace->worker_lost(worker, reason, now);
  impl_->cluster.on_worker_lost(worker, reason, now);
  impl_->pump(now);
}

Status Router::drain(ReplicaId replica, TimePoint now) {
  impl_->ledger.set_now(now);
  if (impl_->trace) impl_->trace->drain(replica, now);
  RETURN_IF_ERROR(impl_->cluster.drain(replica));
  const std::size_t model_index = impl_->cluster.find_replica(replica)->model_index;
  const auto target = impl_->targets.find(replica);
  if (target != impl_->targets.end()) {
    target->second.accepts = false;
    target->second.reserved_for.reset();
  }
  impl_->last_loss[model_index] = str_cat("replica ", replica, " drains");
  if (planted(PlantedBug::kDrainEndsRequests) && impl_->replicas.contains(replica)) {
    for (LiveRequest* request : impl_->replicas.at(replica)->requests())
      impl_->end(*request, wire::FinishReason::kError, unavailable("it drains"));
  }
  impl_->pump(now);
  impl_->end_if_hopeless(model_index);
  return {};
}

void Router::close(TimePoint now) {
  impl_->ledger.set_now(now);
  if (impl_->trace) impl_->trace->close(now);
  impl_->closed = true;
  impl_->cluster.close();
  impl_->pump(now);
}

void Router::advance(TimePoint now) {
  impl_->ledger.set_now(now);
  if (impl_->trace) impl_->trace->advance(now);
  impl_->advance(now);
  impl_->pump(now);
}

TimePoint Router::next_wake() const {
  TimePoint wake = std::min(impl_->ledger.next_deadline(), impl_->cluster.next_wake());
  for (const auto& [id, replica] : impl_->replicas) {
    const TimePoint owed = replica->owed_since();
    if (owed != kNever) wake = std::min(wake, owed + impl_->config.step_timeout);
  }
  return wake;
}

Actions Router::take_actions() {
  std::vector<Output> outputs = impl_->ledger.take_outputs();
  Actions actions = std::exchange(impl_->actions, {});
  actions.outputs = std::move(outputs);
  if (impl_->trace) impl_->trace->actions(actions);
  return actions;
}

RouterStatus Router::status() const {
  RouterStatus status;
  status.replicas = impl_->cluster.status();
  for (ReplicaStatus& of_replica : status.replicas) {
    const auto it = impl_->replicas.find(of_replica.id);
    if (it == impl_->replicas.end()) continue;
    of_replica.kv_used = it->second->blocks().num_owned();
    of_replica.kv_cached = it->second->blocks().num_cached();
    of_replica.running = it->second->num_requests();
    of_replica.steps = it->second->num_steps();
  }
  status.idle_workers = impl_->cluster.num_idle();
  status.queued_requests = impl_->queued_requests();
  status.queued_tokens = impl_->queued_tokens();
  const std::vector<std::uint32_t>& edges = impl_->config.bucket_edges;
  for (std::size_t i = 0; i <= edges.size(); ++i) {
    BucketStatus bucket{.max_tokens = i < edges.size() ? edges[i] : ~std::uint32_t{0}};
    for (const FairQueue& queue : impl_->queues)
      bucket.requests += queue.bucket_size(i);
    status.buckets.push_back(bucket);
  }
  const Ledger::Counts& counts = impl_->ledger.counts();
  status.accepted = counts.accepted;
  status.completed = counts.completed;
  status.failed = counts.failed;
  status.cancelled = counts.cancelled;
  status.refused = counts.refused;
  status.in_flight = impl_->ledger.num_in_flight();
  status.generated_tokens = counts.generated_tokens;
  status.preempted = counts.preempted;
  status.failed_over = counts.failed_over;
  return status;
}

RouterMetrics Router::metrics() const {
  RouterMetrics metrics{.status = status(),
                        .models = impl_->ledger.stats(),
                        .unknown_model = impl_->ledger.num_unknown_model()};
  for (std::size_t i = 0; i < metrics.models.size(); ++i)
    metrics.models[i].waiting = impl_->queues[i].size();
  for (const auto& [id, replica] : impl_->replicas) {
    metrics.models[replica->options().model_index].running += replica->num_requests();
  }
  return metrics;
}

std::vector<RequestView> Router::requests() const {
  std::vector<RequestView> views;
  for (const auto& [id, request] : impl_->ledger.requests()) {
    RequestView view{.id = id, .placed = request->phase == RequestPhase::kPlaced};
    if (view.placed) {
      view.replica = request->replica;
      view.slot = request->slot;
    } else {
      view.waits_for = impl_->queues[request->model_index].waits_behind(id);
      if (view.waits_for == WaitReason::kNothing) {
        view.waits_for = why_not_placed(impl_->targets, *request);
      }
    }
    views.push_back(view);
  }
  return views;
}

bool Router::ready() const {
  return impl_->cluster.has_ready_replica();
}

void Router::audit() const {
  impl_->ledger.audit();
  impl_->cluster.audit();
  std::uint64_t num_running = 0;
  for (const FairQueue& queue : impl_->queues) {
    queue.audit();
    num_running += queue.num_running();
  }
  std::uint64_t num_placed = 0;
  for (const auto& [id, replica] : impl_->replicas) {
    replica->audit();
    num_placed += replica->num_requests();
    const ReplicaRecord* record = impl_->cluster.find_replica(id);
    INVARIANT(record != nullptr && record->is_live()) << "replica " << id << " has a plan only";
    INVARIANT_EQ(record->epoch, replica->options().epoch);
  }
  std::uint64_t num_queued = 0;
  std::uint64_t num_charged = impl_->ledger.num_unsettled();
  for (const auto& [id, request] : impl_->ledger.requests()) {
    num_charged += request->charged_output ? 1 : 0;
    if (request->phase == RequestPhase::kPlaced) continue;
    INVARIANT(impl_->queues[request->model_index].contains(id)) << "request " << id << " is lost";
    ++num_queued;
  }
  for (const auto& [id, target] : impl_->targets) {
    if (!target.reserved_for) continue;
    INVARIANT(impl_->queues[target.replica->options().model_index].contains(*target.reserved_for))
        << "replica " << id << " is kept for no one";
  }
  INVARIANT_EQ(num_charged, num_running);
  INVARIANT_EQ(num_queued, impl_->queued_requests());
  INVARIANT_EQ(num_placed + num_queued, impl_->ledger.num_in_flight());
}

}  // namespace brigade::router
