// SPDX-License-Identifier: Apache-2.0
#include "router/process/process.h"

#include <unistd.h>

#include <csignal>
#include <ctime>
#include <iostream>
#include <optional>
#include <thread>

#include "common/base/file_watch.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/base/strings.h"
#include "common/config/api_keys.h"
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
#include "router/process/trace_file.h"

namespace brigade::router {
namespace {

constexpr Duration kIdleWait = std::chrono::hours(1);

constexpr std::initializer_list<int> kSignals = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

void block_stop_signals() {
  block_signals(kSignals);
  // A client that has closed its connection must not end the router.
  signal(SIGPIPE, SIG_IGN);
}

struct RouterProcess::Impl {
  Status open(const RouterOptions& given);
  Status open_service();
  Status open_doors();
  Status tell();
  void print_ready_when_due();
  /// Takes the signals that wait; true when one of them asks to stop. SIGHUP reads files again.
  bool take_signals();
  void reload();
  void wind_down();
  void stop_in_order();

  RouterOptions options;
  std::string folder;
  std::optional<net::Keys> keys;
  FileDescriptor signals;
  FileDescriptor parent;
  net::EventFd replicas_changed;
  net::EventFd stopped;
  std::optional<FileWatch> watch;
  std::string local_key;  ///< of this user's commands; empty: no keys are asked for
  bool ready_printed = false;

  // Ends run upwards: doors, service, context.
  net::Context context;
  std::unique_ptr<TraceFile> trace;
  std::unique_ptr<RouterService> service;
  std::unique_ptr<ZmqDoor> zmq_door;
  std::unique_ptr<HttpServer> http;
};

Status RouterProcess::Impl::open(const RouterOptions& given) {
  options = given;
  signals = open_signals(kSignals);
  if (options.expected_parent != 0) {
    parent = watch_parent(options.expected_parent);
    if (!parent.valid()) return cancelled("the expected parent is gone");
  }
  // A connection is a descriptor: the usual soft limit of 1024 is less than clients may want.
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
  Trace::Sink sink;
  if (!options.topology.trace.empty()) {
    ASSIGN_OR_RETURN(trace,
                     TraceFile::open(options.topology.trace,
                                     {.max_bytes = options.topology.limits.trace_mib << 20}));
    sink = [this](std::string line) { trace->write(std::move(line)); };
  }
  ASSIGN_OR_RETURN(
      service, RouterService::start(context, {.config = make_router_config(options.topology),
                                              .models = std::move(models),
                                              .worker_endpoints = options.worker_endpoints,
                                              .keys = keys,
                                              .on_replicas = [this] { replicas_changed.signal(); },
                                              .trace = std::move(sink)}));
  return {};
}

Status RouterProcess::Impl::open_doors() {
  if (options.socket) {
    ASSIGN_OR_RETURN(
        zmq_door,
        ZmqDoor::start(context, {.endpoint = options.topology.socket, .keys = keys}, *service));
  }
  if (options.http) {
    ASSIGN_OR_RETURN(HttpOptions http_options, make_http_options(options));
    if (!http_options.api_keys.empty()) http_options.local_key = local_key = config::make_api_key();
    ASSIGN_OR_RETURN(http, HttpServer::start(std::move(http_options), *service));
    watch.emplace(watched_files(options.topology.api));
  }
  return {};
}

Status RouterProcess::Impl::tell() {
  config::RouterRecord record = {.http = http ? http->url() : "",
                                 .admin = http ? http->admin_url() : "",
                                 .api_key = local_key,
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
  std::cout << "ready " << (http ? http->url() : "-") << ' '
            << (zmq_door ? zmq_door->endpoint() : "-") << std::endl;
}

bool RouterProcess::Impl::take_signals() {
  bool stop = false;
  while (const std::optional<int> signal = take_signal(signals)) {
    if (*signal == SIGHUP) {
      reload();
    } else {
      stop = true;
    }
  }
  return stop;
}

void RouterProcess::Impl::reload() {
  if (!http) return;
  const Status status = http->reload();
  if (status.ok()) {
    log_info("read the files of the HTTP door again");
  } else {
    log_error(str_cat("keeping the keys and certificate there were: ", status.message()));
  }
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
    if (take_signals()) {
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
  std::optional<std::size_t> files;
  if (impl_->watch && impl_->watch->fd() >= 0) files = poller.add_fd(impl_->watch->fd());
  if (impl_->parent.valid()) poller.add_fd(impl_->parent.get());
  while (true) {
    impl_->print_ready_when_due();
    ASSIGN_OR_RETURN(const bool woken, poller.wait(Clock::now() + kIdleWait));
    if (!woken) continue;
    if (poller.readable(signals)) {
      if (!impl_->take_signals()) continue;
      log_info("stopping on a signal");
      break;
    }
    if (poller.readable(replicas)) {
      impl_->replicas_changed.clear();
      continue;
    }
    if (files && poller.readable(*files)) {
      if (impl_->watch->changed()) impl_->reload();
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
