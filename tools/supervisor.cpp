// SPDX-License-Identifier: Apache-2.0
#include "tools/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <thread>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "tools/launch.h"
#include "tools/progress.h"

namespace brigade::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kRouterStart = seconds(60);  ///< reading the model's header and vocabulary
constexpr Duration kLoadSlack = seconds(30);  ///< joining and allocating, beside the load time-out
constexpr Duration kStatusTimeout = seconds(2);
constexpr Duration kRouterStop = seconds(kGraceSeconds + 5);
constexpr Duration kWorkerStop = seconds(8);
constexpr Duration kLongestWait = std::chrono::hours(1);

int poll_timeout_ms(TimePoint wake, TimePoint now) {
  if (wake <= now) return 0;
  const Duration wait =
      std::min<Duration>(wake == kNever ? kLongestWait : wake - now, kLongestWait);
  // Rounded up: waking early would spin until the time has come.
  return static_cast<int>(std::chrono::ceil<milliseconds>(wait).count());
}

}  // namespace

Supervisor::~Supervisor() {
  for (const int fd : {signal_fd_, wake_fd_})
    if (fd >= 0) close(fd);
}

Status Supervisor::run() {
  return run_with([this]() -> Status {
    std::cout << "ready " << api_->address().url() << " " << client_endpoint_ << std::endl;
    return supervise(kNever, kLongestWait, [] { return false; });
  });
}

Status Supervisor::run_job(const std::function<Status(const ApiClient&)>& job) {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return internal_error(str_cat("eventfd: ", std::strerror(errno)));
  std::atomic<bool> ended = false;
  Status result;
  std::thread thread;
  Status status = run_with([&]() -> Status {
    thread = std::thread([&] {
      result = job(*api_);
      ended = true;
      const std::uint64_t one = 1;
      (void)!write(wake_fd_, &one, sizeof one);
    });
    return supervise(kNever, kLongestWait, [&] { return ended.load(); });
  });
  // With the router gone its calls have ended.
  if (thread.joinable()) thread.join();
  RETURN_IF_ERROR(status);
  if (stop_requested_) return {StatusCode::kCancelled, "stopped by a signal"};
  return result;
}

Status Supervisor::run_with(const std::function<Status()>& serve) {
  terminal_ = isatty(STDERR_FILENO) != 0;
  ASSIGN_OR_RETURN(router_program_, sibling_program("brigade-router"));
  ASSIGN_OR_RETURN(worker_program_, sibling_program("brigade-worker"));
  RETURN_IF_ERROR(take_signals());

  Status status = [&]() -> Status {
    RETURN_IF_ERROR(start_router());
    RETURN_IF_ERROR(start_workers());
    const TimePoint deadline = Clock::now() + milliseconds(topology_.timeouts.load_ms) + kLoadSlack;
    RETURN_IF_ERROR(supervise(deadline, milliseconds(25), [this] {
                      return look_for_ready();
                    }).with_context("waiting for all replicas to be ready"));
    end_progress();
    if (stop_requested_) return {};
    ready_ = true;
    return serve();
  }();
  end_progress();
  stop();
  return status;
}

Status Supervisor::take_signals() {
  // A reader of our output that goes away must not end us before our children.
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd_ < 0) return internal_error(str_cat("signalfd: ", std::strerror(errno)));
  return {};
}

Status Supervisor::start_router() {
  ASSIGN_OR_RETURN(const TopologyFile file, TopologyFile::make(topology_));
  ASSIGN_OR_RETURN(router_,
                   Process::start(router_arguments(router_program_, topology_, file.path())));
  router_pid_ = router_->pid();
  return supervise(Clock::now() + kRouterStart, milliseconds(20),
                   [this] { return look_for_router(); })
      .with_context("waiting for the router to listen");
}

bool Supervisor::look_for_router() {
  auto found = find_router_of(router_pid_);
  if (!found) return false;
  client_endpoint_ = found->client_endpoint;
  worker_endpoint_ = found->worker_endpoint;
  api_.emplace(std::move(found->address));
  return true;
}

Status Supervisor::start_workers() {
  if (stop_requested_) return {};
  // A simulated device sleeps: it needs no CPU of its own.
  const bool computes = topology_.device == config::Device::kCpu;
  const auto placements =
      place_ranks(computes ? num_usable_cpus() : 0, topology_.num_ranks(), topology_.threads);
  for (std::uint32_t i = 0; i < topology_.num_ranks(); ++i) {
    seats_.push_back({.index = i, .placement = placements[i]});
  }
  for (Seat& seat : seats_)
    RETURN_IF_ERROR(start_worker(seat));
  return {};
}

Status Supervisor::start_worker(Seat& seat) {
  ASSIGN_OR_RETURN(seat.process,
                   Process::start(worker_arguments(worker_program_, topology_, worker_endpoint_,
                                                   seat.index, seat.placement)));
  seat.start_at.reset();
  seat.policy.on_start(Clock::now());
  return {};
}

template <typename Condition>
Status Supervisor::supervise(TimePoint deadline, Duration period, Condition until) {
  while (!stop_requested_) {
    if (until()) return {};
    const TimePoint now = Clock::now();
    if (now >= deadline) return deadline_exceeded("it took too long");
    RETURN_IF_ERROR(step(std::min(deadline, now + period)));
  }
  return {};
}

Status Supervisor::step(TimePoint wake) {
  std::vector<pollfd> fds = {{.fd = signal_fd_, .events = POLLIN, .revents = 0},
                             {.fd = router_->pidfd(), .events = POLLIN, .revents = 0},
                             {.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  for (const Seat& seat : seats_) {
    if (seat.process) fds.push_back({.fd = seat.process->pidfd(), .events = POLLIN, .revents = 0});
  }
  const int count =
      poll(fds.data(), fds.size(), poll_timeout_ms(std::min(wake, next_restart()), Clock::now()));
  if (count < 0 && errno != EINTR) return internal_error(str_cat("poll: ", std::strerror(errno)));
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == sizeof info)
    stop_requested_ = true;
  if (stop_requested_) return {};
  if (auto end = router_->try_wait()) {
    return unavailable(str_cat("the router (pid ", router_pid_, ") ", end->describe(),
                               "; its messages are above"));
  }
  RETURN_IF_ERROR(reap_workers());
  return restart_workers();
}

Status Supervisor::reap_workers() {
  const TimePoint now = Clock::now();
  for (Seat& seat : seats_) {
    if (!seat.process) continue;
    const auto end = seat.process->try_wait();
    if (!end) continue;
    const std::string who = str_cat("worker ", seat.index, " (pid ", seat.process->pid(), ") ");
    remove_traces_of(seat.process->pid());
    seat.process.reset();
    if (end->clean()) {
      log_info(str_cat(who, "left in good order"));
      continue;
    }
    // One that refuses to start will refuse again: its reason is what the user needs, not a loop.
    if (!ready_ && end->signal == 0) {
      return unavailable(str_cat(who, end->describe(), "; its messages are above"));
    }
    seat.start_at = seat.policy.on_death(now);
    log_warning(str_cat(who, end->describe(), "; another is started"));
  }
  return {};
}

Status Supervisor::restart_workers() {
  const TimePoint now = Clock::now();
  for (Seat& seat : seats_) {
    if (seat.start_at && *seat.start_at <= now) RETURN_IF_ERROR(start_worker(seat));
  }
  return {};
}

TimePoint Supervisor::next_restart() const {
  TimePoint next = kNever;
  for (const Seat& seat : seats_) {
    if (seat.start_at) next = std::min(next, *seat.start_at);
  }
  return next;
}

bool Supervisor::look_for_ready() {
  const auto status = api_->status(kStatusTimeout);
  if (!status.ok()) return false;  // busy or not listening yet; the deadline is the caller's
  show_progress(*status);
  return status->num_ready() >= topology_.dp;
}

void Supervisor::show_progress(const StatusView& status) {
  if (terminal_) {
    std::cerr << "\r\033[K" << render_progress(status, topology_.dp, terminal_width() - 1)
              << std::flush;
    progress_shown_ = true;
  } else if (status.num_ready() != last_ready_) {
    std::cerr << status.num_ready() << " of " << topology_.dp << " replicas ready" << std::endl;
  }
  last_ready_ = status.num_ready();
}

void Supervisor::end_progress() {
  if (progress_shown_) std::cerr << std::endl;
  progress_shown_ = false;
}

void Supervisor::stop() {
  if (router_) {
    router_->signal(SIGTERM);
    wait_for_end({&*router_}, Clock::now() + kRouterStop);
  }
  std::vector<Process*> workers;
  for (Seat& seat : seats_) {
    if (!seat.process) continue;
    seat.process->signal(SIGTERM);
    workers.push_back(&*seat.process);
  }
  wait_for_end(workers, Clock::now() + kWorkerStop);
  std::vector<std::int64_t> pids;
  for (const Process* worker : workers)
    pids.push_back(worker->pid());
  // Whoever is left is killed and reaped by its Process.
  seats_.clear();
  router_.reset();
  // One killed a moment before the stop has not been reaped as such: nobody else removes its files.
  for (const std::int64_t pid : pids)
    remove_traces_of(pid);
  if (router_pid_ > 0) remove_traces_of(router_pid_);
}

void Supervisor::wait_for_end(std::vector<Process*> processes, TimePoint deadline) {
  while (true) {
    std::erase_if(processes, [](Process* process) {
      return process->pidfd() < 0 || process->try_wait().has_value();
    });
    const TimePoint now = Clock::now();
    if (processes.empty() || now >= deadline) break;
    std::vector<pollfd> fds = {{.fd = signal_fd_, .events = POLLIN, .revents = 0}};
    for (const Process* process : processes) {
      fds.push_back({.fd = process->pidfd(), .events = POLLIN, .revents = 0});
    }
    poll(fds.data(), fds.size(), poll_timeout_ms(deadline, now));
    // A second signal asks to hurry: the children take a second one in the same way.
    if (!take_signal()) continue;
    for (const Process* process : processes)
      process->signal(SIGTERM);
  }
  for (const Process* process : processes)
    log_warning(str_cat("process ", process->pid(), " did not stop in time and is killed"));
}

bool Supervisor::take_signal() {
  signalfd_siginfo info{};
  bool taken = false;
  while (read(signal_fd_, &info, sizeof info) == sizeof info)
    taken = true;
  return taken;
}

}  // namespace brigade::tools
