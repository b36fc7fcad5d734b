// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ios>
#include <tuple>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/strings.h"
#include "router/core/cluster.h"

namespace brigade::router {
namespace {

std::string_view to_string(ReplicaState state) {
  switch (state) {
    case ReplicaState::kLoading:
      return "loading";
    case ReplicaState::kReady:
      return "ready";
    case ReplicaState::kDraining:
      return "draining";
    case ReplicaState::kDrained:
      return "drained";
    case ReplicaState::kLost:
      return "lost";
  }
  return "unknown";
}

std::string_view rank_state(const WorkerRecord& worker, const ReplicaRecord& replica) {
  if (replica.state == ReplicaState::kDraining) return "draining";
  if (worker.state == WorkerState::kReleased) return "drained";
  return worker.state == WorkerState::kReady ? "ready" : "loading";
}

}  // namespace

Cluster::Cluster(const RouterConfig& config, const Models& models)
    : config_(config), models_(models), health_(models.size()) {
  INVARIANT(config.tp_size > 0 && config.pp_size > 0) << config.tp_size << " x " << config.pp_size;
  for (std::size_t i = 0; i < models.size(); ++i) {
    health_[i].grid = model::check_grid(models[i]->spec, config.tp_size, config.pp_size);
    if (!health_[i].grid.ok()) {
      log_error(str_cat("model ", models[i]->name, ": ", health_[i].grid.message()));
    }
  }
}

std::size_t Cluster::num_live(std::optional<std::size_t> model_index) const {
  return static_cast<std::size_t>(
      std::count_if(replicas_.begin(), replicas_.end(), [model_index](const auto& entry) {
        return entry.second.is_live() && (!model_index || entry.second.model_index == *model_index);
      }));
}

bool Cluster::may_add_replica() const {
  return config_.max_replicas == 0 || num_live() < config_.max_replicas;
}

std::optional<std::size_t> Cluster::next_model(TimePoint now) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const Health& health = health_[i];
    if (!health.grid.ok() || (health.num_failures > 0 && health.not_before > now)) continue;
    if (!best || num_live(i) < num_live(*best)) best = i;
  }
  return best;
}

void Cluster::form(TimePoint now) {
  while (idle_.size() >= num_ranks() && may_add_replica()) {
    const std::optional<std::size_t> model_index = next_model(now);
    if (!model_index) return;
    const std::vector<WorkerId> ranks = choose_ranks(/*with_aborting=*/false);
    if (ranks.empty()) return;
    assign(*model_index, ranks, now);
  }
}

std::vector<WorkerId> Cluster::choose_ranks(bool with_aborting) const {
  // Ranks of a replica have one device kind and one build: else their arithmetic may differ.
  std::map<std::pair<std::string, std::string>, std::vector<WorkerId>> kinds;
  for (const auto& [id, worker] : workers_) {
    const bool aborting = with_aborting && worker.state == WorkerState::kAborting;
    if (worker.state != WorkerState::kIdle && !aborting) continue;
    kinds[{worker.hello.device, worker.hello.build_id}].push_back(id);
  }
  for (const auto& [kind, candidates] : kinds) {
    std::vector<WorkerId> ranks = choose_from(candidates);
    if (!ranks.empty()) return ranks;
  }
  return {};
}

std::vector<WorkerId> Cluster::choose_from(const std::vector<WorkerId>& candidates) const {
  std::map<std::string, std::vector<WorkerId>> by_host;
  for (const WorkerId id : candidates)
    by_host[workers_.at(id).hello.host_id].push_back(id);
  std::vector<std::vector<WorkerId>> hosts;
  for (auto& [host, ids] : by_host) {
    std::sort(ids.begin(), ids.end(), [this](WorkerId a, WorkerId b) {
      const std::uint64_t memory_a = workers_.at(a).hello.memory_bytes;
      const std::uint64_t memory_b = workers_.at(b).hello.memory_bytes;
      return std::tie(memory_b, a) < std::tie(memory_a, b);
    });
    hosts.push_back(std::move(ids));
  }
  std::stable_sort(hosts.begin(), hosts.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  // The host with most workers first: a replica spans as few hosts as can be. The TP ranks of a
  // stage share one.
  std::vector<WorkerId> ranks;
  for (const std::vector<WorkerId>& ids : hosts) {
    const std::size_t whole_stages = ids.size() / config_.tp_size * config_.tp_size;
    const std::size_t count = std::min(whole_stages, num_ranks() - ranks.size());
    ranks.insert(ranks.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  }
  if (ranks.size() < num_ranks()) ranks.clear();
  return ranks;
}

ReplicaId Cluster::free_replica_id() const {
  ReplicaId id = 0;
  for (const auto& [used, replica] : replicas_) {
    if (replica.state == ReplicaState::kLost || used > id) break;
    id = used + 1;
  }
  return id;
}

void Cluster::assign(std::size_t model_index, const std::vector<WorkerId>& ranks, TimePoint now) {
  const ServedModel& model = *models_[model_index];
  ReplicaRecord replica{.id = free_replica_id(),
                        .model_index = model_index,
                        .epoch = ++last_epoch_,
                        .ranks = ranks,
                        .layers = model::split_layers(model.spec, config_.pp_size)};
  std::vector<wire::StageInfo> stages(config_.pp_size);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    wire::StageInfo& stage = stages[i / config_.tp_size];
    const wire::Hello& hello = workers_.at(ranks[i]).hello;
    stage.layers = replica.layers[i / config_.tp_size];
    stage.tp_size = config_.tp_size;
    stage.endpoints.push_back(hello.endpoints);
    stage.host_ids.push_back(hello.host_id);
    stage.link_keys.push_back(hello.link_key);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    WorkerRecord& worker = workers_.at(ranks[i]);
    worker.state = WorkerState::kLoading;
    worker.replica = replica.id;
    worker.epoch = replica.epoch;
    worker.tp_rank = static_cast<std::uint32_t>(i % config_.tp_size);
    worker.pp_stage = static_cast<std::uint32_t>(i / config_.tp_size);
    worker.load_fraction = 0;
    worker.last_progress = now;
    idle_.erase(worker.id);
    // The first rank's incarnation keeps the groups of two routers on one host apart.
    const std::uint64_t group_id = workers_.at(ranks[i - worker.tp_rank]).hello.incarnation;
    wire::Assign message{.epoch = replica.epoch,
                         .replica = replica.id,
                         .model_name = model.name,
                         .model_path = model.path,
                         .model_digest = model.digest,
                         .tp_rank = worker.tp_rank,
                         .pp_stage = worker.pp_stage,
                         .stages = stages,
                         .group_name = str_cat("brigade-", std::hex, group_id, std::dec, "-e",
                                               replica.epoch, "-s", worker.pp_stage),
                         .activations = config_.activations,
                         .kv_type = config_.kv_type,
                         .max_step_tokens = config_.step_tokens,
                         .max_seqs = config_.max_seqs,
                         .collective_timeout_ms = config_.collective_timeout_ms,
                         .sim = config_.sim};
    send(worker.id, std::move(message));
  }
  log_info(str_cat("replica ", replica.id, " forms: ", model.name, ", ", config_.tp_size, " x ",
                   config_.pp_size, " ranks, epoch ", replica.epoch));
  replicas_.insert_or_assign(replica.id, std::move(replica));
}

bool Cluster::can_serve(std::size_t model_index) const {
  for (const auto& [id, replica] : replicas_) {
    if (replica.model_index != model_index) continue;
    if (replica.state == ReplicaState::kLoading || replica.state == ReplicaState::kReady) {
      return true;
    }
  }
  const Health& health = health_[model_index];
  return health.grid.ok() && health.num_failures < kMaxFailures && may_add_replica() &&
         !choose_ranks(/*with_aborting=*/true).empty();
}

std::string Cluster::why_not(std::size_t model_index) const {
  const Health& health = health_[model_index];
  if (!health.grid.ok()) return health.grid.message();
  if (health.num_failures >= kMaxFailures) {
    return str_cat(health.num_failures,
                   " tries to bring one up failed, the last with: ", health.last.message());
  }
  return str_cat(idle_.size(), " workers stand by, and one takes ", num_ranks(), " (",
                 config_.tp_size, " x ", config_.pp_size, ')');
}

bool Cluster::has_ready_replica() const {
  return std::any_of(replicas_.begin(), replicas_.end(),
                     [](const auto& entry) { return entry.second.state == ReplicaState::kReady; });
}

std::vector<ReplicaStatus> Cluster::status() const {
  std::vector<ReplicaStatus> all;
  for (const auto& [id, replica] : replicas_) {
    ReplicaStatus status{.id = id,
                         .model = models_[replica.model_index]->name,
                         .state = std::string(to_string(replica.state)),
                         .epoch = replica.epoch,
                         .kv_total = replica.num_kv_blocks};
    for (const WorkerId worker_id : replica.ranks) {
      const WorkerRecord& worker = workers_.at(worker_id);
      status.ranks.push_back({.worker = worker.hello.name,
                              .pid = worker.hello.pid,
                              .host = worker.hello.host_id,
                              .state = std::string(rank_state(worker, replica)),
                              .tp_rank = worker.tp_rank,
                              .pp_stage = worker.pp_stage,
                              .layers = replica.layers[worker.pp_stage],
                              .load_fraction = worker.load_fraction,
                              .busy_fraction = worker.busy_fraction,
                              .bubble_fraction = worker.bubble_fraction,
                              .times = worker.times});
    }
    all.push_back(std::move(status));
  }
  return all;
}

}  // namespace brigade::router
