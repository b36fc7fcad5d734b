// SPDX-License-Identifier: Apache-2.0
#include "router/core/cluster.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::router {
namespace {

constexpr Duration kMaxBackOff = std::chrono::seconds(30);
constexpr Duration kBusyWindow = std::chrono::seconds(1);

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

bool loads(const WorkerRecord& worker) {
  return worker.state == WorkerState::kLoading || worker.state == WorkerState::kLoaded;
}

}  // namespace

std::string describe(const WorkerRecord& worker) {
  std::string text = str_cat("worker ", worker.hello.name, " (pid ", worker.hello.pid);
  if (worker.epoch != 0) text += str_cat(", stage ", worker.pp_stage, ", rank ", worker.tp_rank);
  return text + ")";
}

void Cluster::send(WorkerId worker, wire::ToWorker message) {
  sends_.push_back({.worker = worker, .message = std::move(message)});
}

Status Cluster::check_hello(const wire::Hello& hello) const {
  if (hello.protocol_version != wire::kProtocolVersion) {
    return failed_precondition(str_cat("protocol version ", hello.protocol_version,
                                       ", the router has ", wire::kProtocolVersion));
  }
  std::string wanted = config_.schema_hash;
  for (const auto& [id, worker] : workers_) {
    if (wanted.empty() && worker.state != WorkerState::kReleased) wanted = worker.hello.schema_hash;
  }
  if (!wanted.empty() && hello.schema_hash != wanted) {
    return failed_precondition(
        str_cat("schema hash ", quoted(hello.schema_hash), ", wanted is ", quoted(wanted)));
  }
  return {};
}

void Cluster::on_hello(WorkerId worker, wire::Hello hello, TimePoint now) {
  on_worker_lost(worker, "it started anew", now);
  for (const auto& [id, other] : workers_) {
    if (other.hello.incarnation != hello.incarnation || hello.incarnation == 0) continue;
    on_worker_lost(WorkerId(id), "it connected anew", now);
    break;
  }
  WorkerRecord& record = workers_[worker];
  const Status checked = check_hello(hello);
  record.id = worker;
  record.hello = std::move(hello);
  record.last_heard = now;
  record.window_start = now;
  if (!checked.ok()) {
    record.state = WorkerState::kReleased;
    log_error(str_cat(describe(record), " is refused: ", checked.message()));
    send(worker, wire::Release{.reason = "refused: " + checked.message()});
    return;
  }
  become_idle(record);
}

bool Cluster::on_heard(WorkerId worker, TimePoint now) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) {
    send(worker, wire::Release{.reason = "the router has given this worker up: start it anew"});
    return false;
  }
  it->second.last_heard = now;
  return true;
}

WorkerRecord* Cluster::find_assigned(WorkerId worker, std::uint64_t epoch) {
  const auto it = workers_.find(worker);
  if (it == workers_.end() || it->second.epoch == 0 || it->second.epoch != epoch) return nullptr;
  return &it->second;
}

void Cluster::on_load_progress(WorkerId worker, const wire::LoadProgress& progress, TimePoint now) {
  WorkerRecord* record = find_assigned(worker, progress.epoch);
  if (record == nullptr || !(progress.fraction > record->load_fraction)) return;
  record->load_fraction = std::min(progress.fraction, 1.0F);
  record->last_progress = now;
}

void Cluster::on_loaded(WorkerId worker, const wire::Loaded& loaded, TimePoint now) {
  WorkerRecord* record = find_assigned(worker, loaded.epoch);
  if (record == nullptr || record->state != WorkerState::kLoading) return;
  record->state = WorkerState::kLoaded;
  record->load_fraction = 1;
  record->last_progress = now;
  record->max_kv_blocks = loaded.max_kv_blocks;
  ReplicaRecord& replica = replicas_.at(record->replica);
  const bool all = std::all_of(replica.ranks.begin(), replica.ranks.end(), [this](WorkerId id) {
    return workers_.at(id).state == WorkerState::kLoaded;
  });
  if (all) start(replica, now);
}

void Cluster::start(ReplicaRecord& replica, TimePoint now) {
  const ServedModel& model = *models_[replica.model_index];
  const WorkerRecord* smallest = nullptr;
  for (const WorkerId id : replica.ranks) {
    const WorkerRecord& worker = workers_.at(id);
    if (smallest == nullptr || worker.max_kv_blocks < smallest->max_kv_blocks) smallest = &worker;
  }
  // More than all slots at full context could never be used.
  const auto context_blocks =
      static_cast<std::uint64_t>((model.max_context + wire::kBlockSize - 1) / wire::kBlockSize);
  std::uint64_t num_blocks = std::min(smallest->max_kv_blocks, context_blocks * config_.max_seqs);
  if (config_.max_kv_blocks > 0) num_blocks = std::min(num_blocks, config_.max_kv_blocks);
  if (num_blocks < kMinKvBlocks) {
    fail_replica(replica.id,
                 str_cat("KV cache of ", num_blocks, " blocks, at least ", kMinKvBlocks,
                         " are needed: ", describe(*smallest), " has ",
                         smallest->hello.memory_bytes, " bytes for weights and KV"),
                 now);
    return;
  }
  replica.num_kv_blocks = num_blocks;
  replica.started = true;
  for (const WorkerId id : replica.ranks) {
    send(id, wire::Start{.epoch = replica.epoch, .num_kv_blocks = num_blocks});
  }
}

void Cluster::on_ready(WorkerId worker, const wire::Ready& ready, TimePoint now) {
  WorkerRecord* record = find_assigned(worker, ready.epoch);
  if (record == nullptr || record->state != WorkerState::kLoaded) return;
  ReplicaRecord& replica = replicas_.at(record->replica);
  if (!replica.started) return;
  record->state = WorkerState::kReady;
  record->last_progress = now;
  const bool all = std::all_of(replica.ranks.begin(), replica.ranks.end(), [this](WorkerId id) {
    return workers_.at(id).state == WorkerState::kReady;
  });
  if (!all || replica.state != ReplicaState::kLoading) return;
  replica.state = ReplicaState::kReady;
  replica.was_ready = true;
  log_info(str_cat("replica ", replica.id, " is ready: ", models_[replica.model_index]->name, ", ",
                   replica.ranks.size(), " ranks, ", replica.num_kv_blocks, " KV blocks"));
  events_.push_back({.kind = ClusterEvent::Kind::kReady,
                     .replica = replica.id,
                     .model_index = replica.model_index});
}

void Cluster::on_failed(WorkerId worker, const wire::Failed& failed, TimePoint now) {
  WorkerRecord& record = workers_.at(worker);
  if (failed.epoch == 0) return;
  if (record.epoch == failed.epoch) {
    fail_replica(record.replica, str_cat(describe(record), ": ", failed.status.message()), now);
  }
  // It has left the epoch by itself: there is no answer to the abort to wait for.
  if (record.state == WorkerState::kAborting && record.aborted_epoch == failed.epoch) {
    become_idle(record);
  }
}

void Cluster::on_heartbeat(WorkerId worker, const wire::Heartbeat& heartbeat, TimePoint now) {
  WorkerRecord& record = workers_.at(worker);
  roll_window(record, now);
  // Four to a time-out: one that is late, or lost with its connection, is no loss of the worker.
  const auto interval =
      std::chrono::duration_cast<std::chrono::milliseconds>(config_.heartbeat_timeout / 4);
  send(worker, wire::HeartbeatAck{.epoch = heartbeat.epoch,
                                  .interval_ms = static_cast<std::uint32_t>(interval.count())});
  if (record.state == WorkerState::kAborting && record.aborted_epoch != heartbeat.epoch) {
    become_idle(record);
  }
}

void Cluster::roll_window(WorkerRecord& worker, TimePoint now) {
  const Duration elapsed = now - worker.window_start;
  if (elapsed < kBusyWindow) return;
  const auto fraction = [&](std::uint64_t us) {
    return std::min(1.0, static_cast<double>(us) * 1e-6 / seconds(elapsed));
  };
  worker.busy_fraction = fraction(worker.window_times.compute_us);
  worker.bubble_fraction = fraction(worker.window_times.wait_us);
  worker.window_times = {};
  worker.window_start = now;
}

void Cluster::on_busy(WorkerId worker, const RankTimes& times, TimePoint now) {
  WorkerRecord& record = workers_.at(worker);
  record.window_times += times;
  record.times += times;
  roll_window(record, now);
}

void Cluster::on_worker_lost(WorkerId worker, const std::string& reason, TimePoint now) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  const WorkerRecord record = std::move(it->second);
  workers_.erase(it);
  idle_.erase(worker);
  if (record.epoch != 0) {
    leave_replica(record, reason, now);
  } else {
    events_.push_back({.kind = ClusterEvent::Kind::kFewer});
  }
}

void Cluster::leave_replica(const WorkerRecord& worker, const std::string& reason, TimePoint now) {
  ReplicaRecord& replica = replicas_.at(worker.replica);
  std::erase(replica.ranks, worker.id);
  if (replica.is_live()) {
    // One that never came up may be what kills its workers: the next try waits.
    take_down(replica, str_cat(describe(worker), ": ", reason), !replica.was_ready, now);
  } else if (replica.state == ReplicaState::kDrained && replica.ranks.empty()) {
    replicas_.erase(worker.replica);
  }
}

void Cluster::become_idle(WorkerRecord& worker) {
  worker.state = WorkerState::kIdle;
  worker.epoch = 0;
  worker.load_fraction = 0;
  idle_.insert(worker.id);
}

void Cluster::become_aborting(WorkerRecord& worker, TimePoint now) {
  worker.state = WorkerState::kAborting;
  worker.aborted_epoch = std::exchange(worker.epoch, 0);
  worker.load_fraction = 0;
  // Ranks that waited for the one that hangs were silent too: each gets its time to answer.
  worker.last_heard = now;
}

void Cluster::take_down(ReplicaRecord& replica, const std::string& reason, bool back_off,
                        TimePoint now) {
  const std::string news = str_cat("replica ", replica.id, " is down: ", reason);
  if (closed_) {
    log_info(news);
  } else {
    log_warning(news);
  }
  replica.working = false;
  for (const WorkerId id : replica.ranks) {
    send(id, wire::Abort{.epoch = replica.epoch, .reason = reason});
  }
  if (replica.state == ReplicaState::kDraining) {
    // As in become_aborting(): its ranks may have been silent for as long as a step may take.
    for (const WorkerId id : replica.ranks)
      workers_.at(id).last_heard = now;
    release(replica.id, "it was to drain and is down");
  } else {
    for (const WorkerId id : replica.ranks)
      become_aborting(workers_.at(id), now);
    replica.ranks.clear();
    replica.state = ReplicaState::kLost;
  }
  if (back_off) {
    Health& health = health_[replica.model_index];
    const std::uint32_t doublings = std::min(health.num_failures, 10U);
    const Duration wait = std::chrono::seconds(1) * (1U << doublings);
    ++health.num_failures;
    health.not_before = now + std::min(wait, kMaxBackOff);
    health.last = unavailable(reason);
  }
  events_.push_back({.kind = ClusterEvent::Kind::kDown,
                     .replica = replica.id,
                     .model_index = replica.model_index,
                     .reason = reason});
}

void Cluster::fail_replica(ReplicaId id, const std::string& reason, TimePoint now) {
  ReplicaRecord& replica = replicas_.at(id);
  if (replica.is_live()) take_down(replica, reason, /*back_off=*/true, now);
}

void Cluster::note_success(ReplicaId id) {
  health_[replicas_.at(id).model_index].num_failures = 0;
}

Status Cluster::drain(ReplicaId id) {
  const auto it = replicas_.find(id);
  if (it == replicas_.end()) return not_found(str_cat("there is no replica ", id));
  ReplicaRecord& replica = it->second;
  switch (replica.state) {
    case ReplicaState::kLoading:
      release(id, "drained while it was loading");
      break;
    case ReplicaState::kReady:
      replica.state = ReplicaState::kDraining;
      break;
    case ReplicaState::kDraining:
      break;
    case ReplicaState::kDrained:
    case ReplicaState::kLost:
      return failed_precondition(
          str_cat("replica ", id, " is ",
                  replica.state == ReplicaState::kLost ? "lost" : "drained already"));
  }
  return {};
}

void Cluster::release(ReplicaId id, const std::string& reason) {
  ReplicaRecord& replica = replicas_.at(id);
  replica.state = ReplicaState::kDrained;
  for (const WorkerId worker : replica.ranks) {
    workers_.at(worker).state = WorkerState::kReleased;
    send(worker, wire::Release{.reason = reason});
  }
  if (replica.ranks.empty()) replica.state = ReplicaState::kLost;
  log_info(str_cat("replica ", id, " is drained: ", reason));
}

Duration Cluster::silence_limit(const WorkerRecord& worker) const {
  // Heartbeats come from the step loop, which does not turn while weights load or inside a step.
  if (loads(worker)) return std::max(config_.load_timeout, config_.heartbeat_timeout);
  const auto it = worker.epoch == 0 ? replicas_.end() : replicas_.find(worker.replica);
  const bool in_step = it != replicas_.end() && it->second.working;
  return in_step ? std::max(config_.step_timeout, config_.heartbeat_timeout)
                 : config_.heartbeat_timeout;
}

void Cluster::set_working(ReplicaId id, bool working, TimePoint now) {
  const auto it = replicas_.find(id);
  if (it == replicas_.end() || it->second.working == working) return;
  it->second.working = working;
  if (working) return;
  for (const WorkerId rank : it->second.ranks) {
    const auto worker = workers_.find(rank);
    if (worker != workers_.end()) worker->second.last_heard = now;
  }
}

void Cluster::advance(TimePoint now) {
  while (const std::optional<ReplicaId> stuck = find_stuck(now)) {
    fail_replica(*stuck,
                 str_cat("no progress in loading for ", seconds(config_.load_timeout), " s"), now);
  }
  // One at a time: what is found changes what is asked of others.
  while (const std::optional<WorkerId> silent = find_silent(now)) {
    const WorkerRecord& worker = workers_.at(*silent);
    const std::string reason = str_cat("silent for ", seconds(now - worker.last_heard), " s");
    if (worker.epoch != 0 && replicas_.at(worker.replica).is_live()) {
      // It may only wait for another rank. Who does not answer the abort is lost.
      ReplicaRecord& replica = replicas_.at(worker.replica);
      take_down(replica, str_cat(describe(worker), ": ", reason), !replica.was_ready, now);
      continue;
    }
    on_worker_lost(*silent, reason, now);
    // In case it is only stopped: it must not go on when it wakes.
    send(*silent, wire::Release{.reason = reason});
  }
}

std::optional<WorkerId> Cluster::find_silent(TimePoint now) const {
  for (const auto& [id, worker] : workers_) {
    if (worker.last_heard + silence_limit(worker) <= now) return id;
  }
  return std::nullopt;
}

std::optional<ReplicaId> Cluster::find_stuck(TimePoint now) const {
  for (const auto& [id, worker] : workers_) {
    if (loads(worker) && worker.last_progress + config_.load_timeout <= now) return worker.replica;
  }
  return std::nullopt;
}

TimePoint Cluster::next_wake() const {
  TimePoint wake = kNever;
  for (const auto& [id, worker] : workers_) {
    wake = std::min(wake, worker.last_heard + silence_limit(worker));
    if (loads(worker)) wake = std::min(wake, worker.last_progress + config_.load_timeout);
  }
  const bool failing = std::any_of(health_.begin(), health_.end(), [](const Health& health) {
    return health.grid.ok() && health.num_failures > 0;
  });
  if (!failing || idle_.size() < num_ranks() || !may_add_replica() ||
      choose_ranks(/*with_aborting=*/false).empty()) {
    return wake;
  }
  for (const Health& health : health_) {
    if (health.grid.ok() && health.num_failures > 0) wake = std::min(wake, health.not_before);
  }
  return wake;
}

const WorkerRecord* Cluster::find_worker(WorkerId worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? nullptr : &it->second;
}

const ReplicaRecord* Cluster::find_replica(ReplicaId replica) const {
  const auto it = replicas_.find(replica);
  return it == replicas_.end() ? nullptr : &it->second;
}

void Cluster::audit() const {
  for (const auto& [id, worker] : workers_) {
    INVARIANT_EQ(worker.state == WorkerState::kIdle, idle_.contains(id));
    if (worker.epoch == 0) continue;
    const ReplicaRecord& replica = replicas_.at(worker.replica);
    INVARIANT_EQ(replica.epoch, worker.epoch);
    INVARIANT_EQ(std::count(replica.ranks.begin(), replica.ranks.end(), id), 1);
  }
  for (const auto& [id, replica] : replicas_) {
    if (replica.is_live()) INVARIANT_EQ(replica.ranks.size(), num_ranks());
    for (const WorkerId worker : replica.ranks)
      INVARIANT_EQ(workers_.at(worker).replica, id);
  }
}

}  // namespace brigade::router
