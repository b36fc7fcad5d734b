// SPDX-License-Identifier: Apache-2.0
#include "router/process/process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <iostream>
#include <optional>
#include <thread>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/config/discovery.h"
#include "common/net/context.h"
#include "common/net/event_fd.h"
#include "common/net/keys.h"
#include "common/net/poller.h"
#include "common/wire/build_info.h"
#include "router/actors/router_service.h"
#include "router/api/http/server.h"
#include "router/api/zmq/zmq_door.h"
#include "router/process/models.h"

namespace brigade::router {
namespace {

constexpr Duration kIdleWait = std::chrono::hours(1);

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

/// A connection is a file descriptor: the usual soft limit of 1024 is less than clients may want.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// A descriptor that is readable when the process has ended; -1 when it is not our parent (any
/// more).
int open_parent(pid_t parent) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  if (fd >= 0 && getppid() == parent) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

class FileDescriptor final {
 public:
  FileDescriptor() = default;
  ~FileDescriptor() { reset(-1); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  void reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // A client that has closed its connection must not end the router.
  signal(SIGPIPE, SIG_IGN);
}

struct RouterProcess::Impl {
  Status open(const RouterOptions& given);
  Status open_service();
  Status open_doors();
  Status tell();
  void print_ready_when_due();
  /// Takes the signals that wait; true when there was one.
  bool take_signal();
  void wind_down();
  void stop_in_order();

  RouterOptions options;
  std::string folder;
  std::optional<net::Keys> keys;
  FileDescriptor signals;
  FileDescriptor parent;
  net::EventFd replicas_changed;
  net::EventFd stopped;
  bool ready_printed = false;

  // Ends run upwards: doors, service, context.
  net::Context context;
  std::unique_ptr<RouterService> service;
  std::unique_ptr<ZmqDoor> zmq_door;
  std::unique_ptr<HttpServer> http;
};

Status RouterProcess::Impl::open(const RouterOptions& given) {
  options = given;
  const sigset_t set = stop_signals();
  signals.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (options.expected_parent != 0) {
    parent.reset(open_parent(options.expected_parent));
    if (parent.get() < 0) return cancelled("the expected parent is gone");
  }
  raise_file_limit();
  ASSIGN_OR_RETURN(folder, config::runtime_folder(options.runtime_dir));
  if (!options.keys.empty()) {
    ASSIGN_OR_RETURN(keys, net::load_keys(options.keys));
    if (keys->role != net::Role::kRouter) {
      return invalid_argument(str_cat(options.keys, " is the key file of a ",
                                      net::to_string(keys->role), ", not of a router"));
    }
    RETURN_IF_ERROR(context.allow_peers(keys->peers));
  }
  if (options.worker_endpoints.empty()) {
    options.worker_endpoints = {str_cat("ipc://", folder, "/router-", getpid(), "-workers.sock"),
                                "tcp://127.0.0.1:0"};
  }
  RETURN_IF_ERROR(open_service());
  RETURN_IF_ERROR(open_doors());
  return tell();
}

Status RouterProcess::Impl::open_service() {
  ASSIGN_OR_RETURN(auto models, load_models(options));
  ASSIGN_OR_RETURN(service, RouterService::start(
                                context, {.config = make_router_config(options.topology),
                                          .models = std::move(models),
                                          .worker_endpoints = options.worker_endpoints,
                                          .keys = keys,
                                          .on_replicas = [this] { replicas_changed.signal(); }}));
  return {};
}

Status RouterProcess::Impl::open_doors() {
  if (options.socket) {
    ASSIGN_OR_RETURN(
        zmq_door,
        ZmqDoor::start(context, {.endpoint = options.topology.socket, .keys = keys}, *service));
  }
  if (options.http) {
    ASSIGN_OR_RETURN(const HostPort address, parse_host_port(options.topology.http));
    ASSIGN_OR_RETURN(http, HttpServer::start({.host = address.host,
                                              .port = address.port,
                                              .allow_remote = options.allow_remote_http,
                                              .version = std::string(wire::build_id())},
                                             *service));
  }
  return {};
}

Status RouterProcess::Impl::tell() {
  config::RouterRecord record = {.http = http ? http->address() : "",
                                 .socket = zmq_door ? zmq_door->endpoint() : "",
                                 .workers = service->worker_endpoints(),
                                 .started_unix = std::time(nullptr)};
  for (const auto& model : service->models())
    record.models.push_back(model->name);
  std::string workers;
  for (const std::string& endpoint : record.workers)
    workers += " " + endpoint;
  log_info(str_cat("workers connect to", workers));
  return config::write_record(folder, std::move(record));
}

void RouterProcess::Impl::print_ready_when_due() {
  if (ready_printed || service->ready_replicas() < options.expect_replicas) return;
  ready_printed = true;
  std::cout << "ready " << (http ? "http://" + http->address() : "-") << ' '
            << (zmq_door ? zmq_door->endpoint() : "-") << std::endl;
}

bool RouterProcess::Impl::take_signal() {
  signalfd_siginfo info{};
  return read(signals.get(), &info, sizeof info) == sizeof info;
}

void RouterProcess::Impl::stop_in_order() {
  const TimePoint deadline = Clock::now() + std::chrono::seconds(options.grace_s);
  service->close();
  if (http) http->stop(deadline);
  service->stop(deadline);
  stopped.signal();
}

void RouterProcess::Impl::wind_down() {
  config::remove_record(folder);
  std::thread stopper([this] { stop_in_order(); });
  net::Poller poller;
  const auto done = poller.add_fd(stopped.fd());
  poller.add_fd(signals.get());
  while (true) {
    (void)poller.wait(Clock::now() + kIdleWait);
    if (poller.readable(done)) break;
    if (take_signal()) {
      log_info("not waiting for running requests");
      service->end_requests();
    }
  }
  stopper.join();
}

Result<std::unique_ptr<RouterProcess>> RouterProcess::start(const RouterOptions& options) {
  auto impl = std::make_unique<Impl>();
  RETURN_IF_ERROR(impl->open(options));
  return std::unique_ptr<RouterProcess>(new RouterProcess(std::move(impl)));
}

RouterProcess::RouterProcess(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RouterProcess::~RouterProcess() {
  config::remove_record(impl_->folder);
}

Status RouterProcess::run() {
  net::Poller poller;
  const auto replicas = poller.add_fd(impl_->replicas_changed.fd());
  const auto signals = poller.add_fd(impl_->signals.get());
  if (impl_->parent.get() >= 0) poller.add_fd(impl_->parent.get());
  while (true) {
    impl_->print_ready_when_due();
    ASSIGN_OR_RETURN(const bool woken, poller.wait(Clock::now() + kIdleWait));
    if (!woken) continue;
    if (poller.readable(signals) && impl_->take_signal()) {
      log_info("stopping on a signal");
      break;
    }
    if (poller.readable(replicas)) {
      impl_->replicas_changed.clear();
      continue;
    }
    // Only the parent is left.
    log_info("stopping because the parent has ended");
    break;
  }
  impl_->wind_down();
  return {};
}

}  // namespace brigade::router
