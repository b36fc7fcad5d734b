// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "router/core/router.h"
#include "router/core/types.h"

namespace brigade::router {

/// idle -> loading -> loaded -> ready -> released, and from anywhere to gone; when its replica is
/// taken down, aborting -> idle. (A replica is what drains: its workers are ready until released.)
enum class WorkerState : std::uint8_t {
  kIdle,      ///< stands by
  kLoading,   ///< has an Assign, loads weights
  kLoaded,    ///< weights are in place; has a Start once all ranks are here
  kReady,     ///< takes steps
  kAborting,  ///< told to abort, and not heard of since: it may be the one that hangs
  kReleased,  ///< told to leave
};

enum class ReplicaState : std::uint8_t { kLoading, kReady, kDraining, kDrained, kLost };

struct WorkerRecord {
  WorkerId id = 0;
  wire::Hello hello;
  WorkerState state = WorkerState::kIdle;
  TimePoint last_heard;
  // When assigned:
  ReplicaId replica = 0;
  std::uint64_t epoch = 0;          ///< 0: none
  std::uint64_t aborted_epoch = 0;  ///< the last one that was aborted
  std::uint32_t tp_rank = 0;
  std::uint32_t pp_stage = 0;
  float load_fraction = 0;
  TimePoint last_progress;
  std::uint64_t max_kv_blocks = 0;
  // Where the time of the current status window goes, and where that of the last one went:
  TimePoint window_start;
  RankTimes window_times;
  double busy_fraction = 0;
  double bubble_fraction = 0;
  RankTimes times;  ///< since it joined
};

struct ReplicaRecord {
  ReplicaId id = 0;
  std::size_t model_index = 0;
  std::uint64_t epoch = 0;
  ReplicaState state = ReplicaState::kLoading;
  std::vector<WorkerId> ranks;  ///< [pp_stage * tp_size + tp_rank] of those that are here
  Partition layers;             ///< [pp_stage]
  std::uint64_t num_kv_blocks = 0;
  bool started = false;    ///< Start was sent
  bool was_ready = false;  ///< took steps in this epoch
  bool working = false;    ///< owes the result of a step

  [[nodiscard]] bool is_live() const {
    return state == ReplicaState::kLoading || state == ReplicaState::kReady ||
           state == ReplicaState::kDraining;
  }
};

/// What the rest of the router must know of.
struct ClusterEvent {
  enum class Kind : std::uint8_t {
    kReady,
    kDown,
    kFewer,  ///< a worker that might have become part of a replica is gone
  };
  Kind kind = Kind::kReady;
  ReplicaId replica = 0;
  std::size_t model_index = 0;
  std::string reason;  ///< kDown
};

/// Who is here, and what they are made into: takes workers in, forms replicas of tp_size x pp_size
/// of them, follows their loading, notices who is gone or silent, and takes a replica down as a
/// whole when one of its ranks is.
class Cluster final {
 public:
  using Models = std::vector<std::shared_ptr<const ServedModel>>;
  /// Failures to get a replica of a model up, in a row, after which requests do not wait for the
  /// next try.
  static constexpr std::uint32_t kMaxFailures = 3;
  /// A replica must hold a sequence of a block and the next one's first token, at least.
  static constexpr std::uint64_t kMinKvBlocks = 2;

  Cluster(const RouterConfig& config, const Models& models);

  // Events. Messages of an epoch that is over change nothing.
  void on_hello(WorkerId worker, wire::Hello hello, TimePoint now);
  /// Notes that the worker lives. False when it is not known (or was given up): it has been told to
  /// leave.
  bool on_heard(WorkerId worker, TimePoint now);
  void on_load_progress(WorkerId worker, const wire::LoadProgress& progress, TimePoint now);
  void on_loaded(WorkerId worker, const wire::Loaded& loaded, TimePoint now);
  void on_ready(WorkerId worker, const wire::Ready& ready, TimePoint now);
  void on_failed(WorkerId worker, const wire::Failed& failed, TimePoint now);
  void on_heartbeat(WorkerId worker, const wire::Heartbeat& heartbeat, TimePoint now);
  /// Of some steps.
  void on_busy(WorkerId worker, const RankTimes& times, TimePoint now);
  void on_worker_lost(WorkerId worker, const std::string& reason, TimePoint now);
  /// Whether the replica owes results. Ranks beat between steps, so while it does only step_timeout
  /// bounds their silence; a step that has ended proves all of its ranks alive.
  void set_working(ReplicaId replica, bool working, TimePoint now);
  void advance(TimePoint now);
  [[nodiscard]] TimePoint next_wake() const;

  /// Makes replicas of idle workers, as many as there may be.
  void form(TimePoint now);
  /// Aborts the replica on all its ranks, which become idle when they answer. The next try waits:
  /// 1 s, 2 s, 4 s, ... up to 30 s.
  void fail_replica(ReplicaId replica, const std::string& reason, TimePoint now);
  /// A step went well: the next failure counts as the first.
  void note_success(ReplicaId replica);
  /// kNotFound, or kFailedPrecondition when it is lost or drained. A second time it changes
  /// nothing.
  Status drain(ReplicaId replica);
  /// The router is about to end: workers that leave from now on are no faults.
  void close() { closed_ = true; }
  /// Sends the replica's workers away: it has drained.
  void release(ReplicaId replica, const std::string& reason);

  [[nodiscard]] const WorkerRecord* find_worker(WorkerId worker) const;
  [[nodiscard]] const ReplicaRecord* find_replica(ReplicaId replica) const;
  /// Whether a request for the model has something to wait for: a replica that is there or loads,
  /// or workers that can become one.
  [[nodiscard]] bool can_serve(std::size_t model_index) const;
  /// Why it has not, for people.
  [[nodiscard]] std::string why_not(std::size_t model_index) const;
  [[nodiscard]] bool has_ready_replica() const;
  [[nodiscard]] std::size_t num_idle() const { return idle_.size(); }
  /// All that is known without the replicas' plans.
  [[nodiscard]] std::vector<ReplicaStatus> status() const;

  [[nodiscard]] std::vector<ClusterEvent> take_events() { return std::exchange(events_, {}); }
  [[nodiscard]] std::vector<SendToWorker> take_sends() { return std::exchange(sends_, {}); }

  void audit() const;

 private:
  struct Health {
    std::uint32_t num_failures = 0;  ///< in a row
    TimePoint not_before = TimePoint::min();
    Status last;
    Status grid;  ///< whether the model can run as tp_size x pp_size at all
  };

  // cluster.cpp
  void send(WorkerId worker, wire::ToWorker message);
  Status check_hello(const wire::Hello& hello) const;
  WorkerRecord* find_assigned(WorkerId worker, std::uint64_t epoch);
  void start(ReplicaRecord& replica, TimePoint now);
  void take_down(ReplicaRecord& replica, const std::string& reason, bool back_off, TimePoint now);
  void leave_replica(const WorkerRecord& worker, const std::string& reason, TimePoint now);
  void become_idle(WorkerRecord& worker);
  static void become_aborting(WorkerRecord& worker, TimePoint now);
  [[nodiscard]] Duration silence_limit(const WorkerRecord& worker) const;
  [[nodiscard]] std::optional<WorkerId> find_silent(TimePoint now) const;
  [[nodiscard]] std::optional<ReplicaId> find_stuck(TimePoint now) const;  ///< in loading
  static void roll_window(WorkerRecord& worker, TimePoint now);

  // cluster_formation.cpp
  [[nodiscard]] std::size_t num_ranks() const {
    return std::size_t{config_.tp_size} * config_.pp_size;
  }
  [[nodiscard]] std::size_t num_live(std::optional<std::size_t> model_index = {}) const;
  [[nodiscard]] bool may_add_replica() const;
  [[nodiscard]] std::optional<std::size_t> next_model(TimePoint now) const;
  [[nodiscard]] std::vector<WorkerId> choose_ranks(bool with_aborting) const;
  [[nodiscard]] std::vector<WorkerId> choose_from(const std::vector<WorkerId>& candidates) const;
  [[nodiscard]] ReplicaId free_replica_id() const;
  void assign(std::size_t model_index, const std::vector<WorkerId>& ranks, TimePoint now);

  const RouterConfig& config_;
  const Models& models_;
  std::map<WorkerId, WorkerRecord> workers_;
  std::set<WorkerId> idle_;
  std::map<ReplicaId, ReplicaRecord> replicas_;
  std::vector<Health> health_;  ///< [models]
  std::uint64_t last_epoch_ = 0;
  bool closed_ = false;
  std::vector<ClusterEvent> events_;
  std::vector<SendToWorker> sends_;
};

[[nodiscard]] std::string describe(const WorkerRecord& worker);

}  // namespace brigade::router
