// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/config/topology.h"
#include "tools/api_client.h"
#include "tools/placement.h"
#include "tools/process.h"
#include "tools/restart_policy.h"

namespace brigade::tools {

/// Runs one router and all workers of a topology on this host until a signal or the router's end.
///
/// A worker that dies is started again with a growing wait; one that leaves in good order (it was
/// drained) is not. When the router dies all ends, with a message. Stopping goes in order: the
/// router first, which lets its clients know, then the workers; who is still there at the deadline
/// is killed. Children are watched and signalled through pidfds only.
///
/// One thread; SIGINT, SIGTERM and SIGHUP are taken through a signalfd.
class Supervisor final {
 public:
  explicit Supervisor(config::Topology topology) : topology_(std::move(topology)) {}
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Starts everything, prints `ready http://HOST:PORT SOCKET` when all replicas are ready, and
  /// supervises. Ok after a stop by signal.
  Status run();

  /// Starts everything, has `job` run on a thread of its own when all replicas are ready, and stops
  /// everything when it has ended. Its status, or what went wrong here; kCancelled after a signal.
  Status run_job(const std::function<Status(const ApiClient&)>& job);

 private:
  /// A place for one worker process.
  struct Seat {
    std::uint32_t index = 0;
    RankPlacement placement;
    std::optional<Process> process;
    RestartPolicy policy;
    std::optional<TimePoint> start_at;  ///< to be started again then
  };

  /// Runs `serve` once all replicas are ready, and stops everything after it.
  Status run_with(const std::function<Status()>& serve);
  Status take_signals();
  Status start_router();
  Status start_workers();
  Status start_worker(Seat& seat);

  /// Supervises until `until` holds, the deadline, a signal or the router's end.
  template <typename Condition>
  Status supervise(TimePoint deadline, Duration period, Condition until);
  /// Waits for an event or until `wake`, and deals with what happened.
  Status step(TimePoint wake);
  Status reap_workers();
  Status restart_workers();
  [[nodiscard]] TimePoint next_restart() const;

  bool look_for_router();
  bool look_for_ready();
  void show_progress(const StatusView& status);
  void end_progress();

  void stop();
  void wait_for_end(std::vector<Process*> processes, TimePoint deadline);
  /// Whether SIGINT, SIGTERM or SIGHUP has come.
  bool take_signal();

  config::Topology topology_;
  std::string router_program_;
  std::string worker_program_;
  int signal_fd_ = -1;
  int wake_fd_ = -1;  ///< an eventfd: the job has ended
  bool stop_requested_ = false;
  bool ready_ = false;
  std::optional<Process> router_;
  std::int64_t router_pid_ = 0;
  std::string worker_endpoint_;
  std::string client_endpoint_;
  std::optional<ApiClient> api_;
  std::vector<Seat> seats_;
  bool terminal_ = false;
  bool progress_shown_ = false;
  std::int64_t last_ready_ = -1;
};

}  // namespace brigade::tools
