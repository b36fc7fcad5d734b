// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/overloaded.h"
#include "common/base/strings.h"
#include "router/core/planted_bug.h"
#include "router/core/router_impl.h"

namespace brigade::router {
namespace {

constexpr std::uint32_t kRetryLostS = 5;

}  // namespace

void Router::Impl::on_message(WorkerId worker, wire::FromWorker message, TimePoint now) {
  if (auto* hello = std::get_if<wire::Hello>(&message)) {
    cluster.on_hello(worker, std::move(*hello), now);
    return;
  }
  if (auto* goodbye = std::get_if<wire::Goodbye>(&message)) {
    cluster.on_worker_lost(worker, "it leaves: " + goodbye->reason, now);
    return;
  }
  if (!cluster.on_heard(worker, now)) return;
  std::visit(Overloaded{
                 [](const wire::Hello&) {},
                 [](const wire::Goodbye&) {},
                 [&](const wire::LoadProgress& m) { cluster.on_load_progress(worker, m, now); },
                 [&](const wire::Loaded& m) { cluster.on_loaded(worker, m, now); },
                 [&](const wire::Ready& m) { cluster.on_ready(worker, m, now); },
                 [&](const wire::Failed& m) { cluster.on_failed(worker, m, now); },
                 [&](const wire::Heartbeat& m) { cluster.on_heartbeat(worker, m, now); },
                 [&](const wire::StepResult& m) { on_result(worker, m, now); },
                 [&](const wire::StageTimes& m) {
                   cluster.on_busy(
                       worker,
                       {.compute_us = m.compute_us, .wait_us = m.wait_us, .link_us = m.link_us},
                       now);
                 },
             },
             message);
}

void Router::Impl::on_result(WorkerId worker, const wire::StepResult& result, TimePoint now) {
  const WorkerRecord& record = *cluster.find_worker(worker);
  // Of an epoch that is over, or from a worker that has none: too late, and of no account.
  const bool is_stale = record.epoch != result.epoch && !planted(PlantedBug::kIgnoreEpoch);
  if (record.epoch == 0 || is_stale) return;
  const auto it = replicas.find(record.replica);
  Status applied;
  if (it == replicas.end()) {
    applied = data_loss(str_cat("result of step ", result.step, " before the replica is ready"));
  } else if (record.tp_rank != 0 || record.pp_stage + 1 != config.pp_size) {
    applied = data_loss(str_cat("result of step ", result.step, " from the wrong rank"));
  } else {
    cluster.on_busy(worker, {.compute_us = result.compute_us, .wait_us = result.wait_us}, now);
    applied = it->second->on_result(result, now, *this);
  }
  if (applied.ok()) {
    cluster.note_success(record.replica);
    dirty.insert(record.replica);
    return;
  }
  log_error(str_cat(describe(record), ": ", applied.message()));
  cluster.fail_replica(record.replica, str_cat(describe(record), ": ", applied.message()), now);
}

void Router::Impl::on_prompt_scored(LiveRequest& request) {
  ledger.on_prompt_scored(request);
  if (!request.only_scores()) return;
  replicas.at(request.replica)->remove(request.slot, request.id);
  ledger.end_scored(request);
}

void Router::Impl::on_sampled(LiveRequest& request, wire::OutputToken token) {
  const std::uint32_t slot = request.slot;
  const RequestId id = request.id;
  Replica& replica = *replicas.at(request.replica);
  if (ledger.on_token(request, std::move(token))) replica.remove(slot, id);
}

void Router::Impl::end_expired(LiveRequest& request) {
  end(request, wire::FinishReason::kError,
      deadline_exceeded(
          str_cat("the deadline passed after ", request.num_output(), " output tokens")));
}

void Router::Impl::on_fault(LiveRequest& request, Status status) {
  end(request, wire::FinishReason::kError, std::move(status));
}

void Router::Impl::advance(TimePoint now) {
  for (LiveRequest* request : ledger.expired(now))
    end_expired(*request);
  cluster.advance(now);
  for (const auto& [id, replica] : replicas) {
    const TimePoint owed = replica->owed_since();
    if (owed == kNever || owed + config.step_timeout > now) continue;
    // The cluster may have lost the last of its ranks a moment ago, and forgotten it.
    if (cluster.find_replica(id) == nullptr) continue;
    cluster.fail_replica(id,
                         str_cat("it owes a step's result for ",
                                 std::chrono::duration<double>(now - owed).count(), " s"),
                         now);
  }
}

void Router::Impl::pump(TimePoint now) {
  do {
    cluster.form(now);
    apply_cluster_events(now);
    settle_ended();
    for (std::size_t i = 0; i < models.size(); ++i)
      dispatch(i, now);
  } while (plan_dirty(now));
  for (const auto& [id, replica] : replicas) {
    cluster.set_working(id, replica->owed_since() != kNever, now);
    replica->audit_when_idle(now);
  }
  release_drained();
  for (SendToWorker& send : cluster.take_sends())
    actions.sends.push_back(std::move(send));
}

void Router::Impl::apply_cluster_events(TimePoint now) {
  const std::vector<ClusterEvent> events = cluster.take_events();
  bool fewer = false;
  for (const ClusterEvent& event : events) {
    if (event.kind == ClusterEvent::Kind::kReady) replica_ready(event);
    if (event.kind == ClusterEvent::Kind::kDown) replica_down(event, now);
    fewer |= event.kind != ClusterEvent::Kind::kReady;
  }
  if (!fewer) return;
  cluster.form(now);
  for (std::size_t i = 0; i < models.size(); ++i)
    end_if_hopeless(i);
}

void Router::Impl::replica_ready(const ClusterEvent& event) {
  const ReplicaRecord& record = *cluster.find_replica(event.replica);
  if (record.state != ReplicaState::kReady) return;  // and gone again
  auto replica = std::make_unique<Replica>(Replica::Options{
      .id = event.replica,
      .model_index = event.model_index,
      .epoch = record.epoch,
      .pp_size = config.pp_size,
      .num_blocks = record.num_kv_blocks,
      .step_tokens = config.step_tokens,
      .max_seqs = config.max_seqs,
      .vocab_size = models[event.model_index]->spec.vocab_size,
      .prefix_cache = config.prefix_cache,
  });
  targets[event.replica] = {.replica = replica.get(), .accepts = true};
  replicas[event.replica] = std::move(replica);
}

void Router::Impl::replica_down(const ClusterEvent& event, TimePoint now) {
  std::vector<LiveRequest*> moved;
  const auto it = replicas.find(event.replica);
  if (it != replicas.end()) {
    moved = it->second->requests();
    for (LiveRequest* request : moved)
      it->second->remove(request->slot, request->id);
    targets.erase(event.replica);
    dirty.erase(event.replica);
    replicas.erase(it);
  }
  const std::string what = str_cat("replica ", event.replica, " was lost (", event.reason, ')');
  for (LiveRequest* request : moved) {
    ledger.unplace_failed_over(*request);
    requeue(*request, now);
    if (request->num_fail_overs > config.max_fail_overs) {
      end(*request, wire::FinishReason::kError,
          unavailable(str_cat(what, " and the request has moved ", config.max_fail_overs,
                              " times already")),
          kRetryLostS);
    }
  }
  last_loss[event.model_index] = what;
}

/// Requests of the model that wait have nothing to wait for: they end.
void Router::Impl::end_if_hopeless(std::size_t model_index) {
  if (cluster.can_serve(model_index)) return;
  for (const RequestId id : queues[model_index].ids()) {
    LiveRequest& request = *ledger.find(id);
    // Its replica drains, and takes it back.
    if (request.num_preemptions > 0 && targets.contains(request.replica)) continue;
    end(request, wire::FinishReason::kError,
        unavailable(str_cat(last_loss[model_index],
                            " and there is no other: ", cluster.why_not(model_index))),
        kRetryLostS);
  }
}

void Router::Impl::settle_ended() {
  for (const Ledger::Settlement& settlement : ledger.take_settlements()) {
    queues[settlement.model_index].settle(settlement.tenant, settlement.correction);
  }
}

void Router::Impl::dispatch(std::size_t model_index, TimePoint now) {
  FairQueue& queue = queues[model_index];
  Placement placement;
  const auto offer_it = [this, &placement, now](const QueueItem& item) {
    return offer(item, placement, now);
  };
  std::uint64_t num_placed = 0;
  std::uint64_t tokens_placed = 0;
  const auto next = [&]() -> std::optional<QueueItem> {
    for (const auto& [id, target] : targets) {
      if (!target.reserved_for || target.replica->options().model_index != model_index) continue;
      auto item = queue.pop_one(*target.reserved_for, std::ref(offer_it), now);
      if (item) return item;
    }
    return queue.pop(std::ref(offer_it), now);
  };
  while (const std::optional<QueueItem> item = next()) {
    if (placement.replica != nullptr) {
      ++num_placed;
      tokens_placed += item->cost;
      note_placement(placement, hot_prefixes);
    }
    place(*ledger.find(item->id), placement.replica, now);
  }
  // A few wait for the next step, or for its budget of prompts, and go faster than a queue would.
  const Slots slots = slots_of(model_index);
  const bool is_queue = slots.all > 0 && queue.size() > slots.may_wait;
  drain_rates[model_index].observe(num_placed, tokens_placed, is_queue, now);
}

/// What the queue is to charge for the request if it goes now; nothing when it cannot. It goes to
/// `placement`, or (null) to its end.
std::optional<std::uint64_t> Router::Impl::offer(const QueueItem& item, Placement& placement,
                                                 TimePoint now) {
  const LiveRequest& request = *ledger.find(item.id);
  placement = {};
  if (request.deadline <= now) return 0;
  placement = choose_replica(targets, request, hot_prefixes);
  if (placement.replica != nullptr) return placement.num_uncached + request.expected_output();
  if (!can_ever_be_placed(targets, request)) return 0;
  // What ran already goes before all others: it does not wait to be kept a place.
  if (request.was_started || item.since + config.queue_ageing <= now) {
    reserve_replica(targets, request);
  }
  return std::nullopt;
}

void Router::Impl::place(LiveRequest& request, Replica* replica, TimePoint now) {
  if (!request.charged_output) {
    request.charged_output = replica == nullptr ? 0 : request.expected_output();
  }
  release_reservation(targets, request.id);
  if (replica != nullptr) {
    ledger.place(request, replica->options().id);
    replica->admit(request);
    dirty.insert(request.replica);
    return;
  }
  if (request.deadline <= now) {
    end_expired(request);
    return;
  }
  // No replica that is up is large enough. What has no length of its own takes what there is.
  const std::int64_t room = max_kv_tokens(request.model_index);
  if (request.is_open_ended && static_cast<std::int64_t>(request.tokens.size()) <= room) {
    request.set_max_tokens(static_cast<std::uint32_t>(room + 1 - request.num_prompt));
    requeue(request, now);
    return;
  }
  ledger.end(request, wire::FinishReason::kError,
             invalid_argument(str_cat("prompt: ", request.num_prompt,
                                      " tokens and a completion of ", request.max_tokens(),
                                      " can never fit: a replica's KV cache ", "holds ", room,
                                      " tokens, which is the maximum context length ", "here")));
}

/// True when more may be placed now: a step has taken prompts' tokens off a replica's backlog, or
/// requests have lost their places.
bool Router::Impl::plan_dirty(TimePoint now) {
  bool more = false;
  for (const ReplicaId id : std::exchange(dirty, {})) {
    const auto it = replicas.find(id);
    if (it == replicas.end()) continue;
    wire::StepCommand command;
    while (it->second->plan(now, command)) {
      more |= command.tokens.size() > command.num_seqs();
      const std::vector<WorkerId>& ranks = cluster.find_replica(id)->ranks;
      for (SendToWorker& send : cluster.take_sends())
        actions.sends.push_back(std::move(send));
      for (std::size_t i = 0; i + 1 < ranks.size(); ++i) {
        actions.sends.push_back({.worker = ranks[i], .message = command});
      }
      actions.sends.push_back({.worker = ranks.back(), .message = std::move(command)});
    }
    for (LiveRequest* request : it->second->take_preempted()) {
      ledger.unplace_preempted(*request);
      if (!planted(PlantedBug::kLosePreempted)) requeue(*request, now);
      more = true;
    }
  }
  return more && queued_requests() > 0;
}

void Router::Impl::release_drained() {
  for (auto it = replicas.begin(); it != replicas.end();) {
    const ReplicaRecord& record = *cluster.find_replica(it->first);
    const bool done = record.state == ReplicaState::kDraining && it->second->num_requests() == 0 &&
                      it->second->num_steps_in_flight() == 0;
    if (!done) {
      ++it;
      continue;
    }
    const std::size_t model_index = it->second->options().model_index;
    cluster.release(it->first, "its requests are done");
    targets.erase(it->first);
    it = replicas.erase(it);
    end_if_hopeless(model_index);
  }
}

}  // namespace brigade::router
