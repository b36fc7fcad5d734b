// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/process/worker.h"

#include <unistd.h>

#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/config/discovery.h"
#include "common/net/endpoint.h"
#include "common/wire/build_info.h"
#include "shard_worker/process/host.h"

namespace brigade::worker {
namespace {

std::string bracketed(const std::string& host) {
  const bool plain_ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return plain_ipv6 ? str_cat('[', host, ']') : host;
}

Result<std::string> link_host(const WorkerOptions& options) {
  if (options.bind.empty()) {
    return options.keys_file.empty() ? "127.0.0.1" : net::address_towards(options.router);
  }
  std::string host = bracketed(options.bind);
  if (host == "*" || host == "0.0.0.0" || host == "[::]") {
    return invalid_argument(str_cat("--bind ", host,
                                    " is no address that other workers could connect to: name the "
                                    "one by which they reach this host"));
  }
  return host;
}

/// A worker that shows the router a key has a link with a key of its own, made for this process:
/// the router tells the other ranks, over connections that are authenticated.
Result<std::optional<net::KeyPair>> make_link_keys(const std::optional<net::Keys>& keys) {
  if (!keys) return std::optional<net::KeyPair>();
  ASSIGN_OR_RETURN(net::KeyPair pair, net::generate_key_pair());
  return std::optional(std::move(pair));
}

}  // namespace

Worker::Worker(const std::string& runtime_dir)
    : incarnation_(random_u64()),
      ipc_path_(str_cat(runtime_dir, "/worker-", getpid(), '-', std::hex, incarnation_ & 0xffff,
                        ".sock")) {}

Result<std::unique_ptr<Worker>> Worker::make(const WorkerOptions& options,
                                             std::unique_ptr<Engine> engine) {
  // What can never be reached must not be waited for.
  RETURN_IF_ERROR(net::check_endpoint(options.router).with_context("--router"));
  ASSIGN_OR_RETURN(const std::string runtime_dir, config::runtime_folder(options.runtime_dir));
  std::optional<net::Keys> keys;
  if (!options.keys_file.empty()) {
    ASSIGN_OR_RETURN(keys, net::load_keys(options.keys_file));
  }
  std::unique_ptr<Worker> worker(new Worker(runtime_dir));
  Worker* self = worker.get();
  ASSIGN_OR_RETURN(std::string bind_host, link_host(options));
  ASSIGN_OR_RETURN(auto link_keys, make_link_keys(keys));
  ASSIGN_OR_RETURN(auto link, StageLink::bind(worker->context_, {.ipc_path = worker->ipc_path_,
                                                                 .bind_host = std::move(bind_host),
                                                                 .keys = std::move(link_keys)}));
  worker->router_ = std::make_unique<RouterLink>(
      worker->context_,
      RouterLink::Options{
          .endpoint = options.router,
          .hello = worker->make_hello(options, *link),
          .keys = std::move(keys),
          .give_up_after = options.give_up_after,
          .on_step = [self](wire::StepCommand command) { self->take_step(std::move(command)); },
          .on_beat_interval = [self](Duration wish) { self->engine_->set_beat_interval(wish); },
          .on_message =
              [self](wire::ToWorker message) {
                // A blocked step ends now, not when the actor's job for it comes up.
                const auto* abort = std::get_if<wire::Abort>(&message);
                if (abort != nullptr) self->engine_->abort(abort->epoch);
                self->actor_->on_message(std::move(message));
              },
          .on_lost = [self] { self->actor_->on_router_lost(); },
          .on_give_up = [self] { self->stop("no router for too long"); }});
  worker->actor_ = std::make_unique<WorkerActor>(WorkerActor::Sinks{
      .to_router = [self](wire::FromWorker message) { self->router_->send(std::move(message)); },
      .to_engine = [self](EngineJob job) { self->engine_->push_job(std::move(job)); },
      .abort_epoch = [self](std::uint64_t epoch) { self->engine_->abort(epoch); },
      .on_leave = [self](const std::string& reason) { self->left_.set_value(reason); }});
  worker->engine_ = std::make_unique<EngineThread>(EngineThread::Options{
      .engine = std::move(engine),
      .link = std::move(link),
      .memory_bytes = options.memory_bytes,
      .kv_memory_bytes = options.kv_memory_bytes,
      .spin = options.spin,
      .to_router = [self](wire::FromWorker message) { self->router_->send(std::move(message)); },
      .on_event = [self](EngineEvent event) { self->actor_->on_engine(std::move(event)); }});
  return worker;
}

Worker::~Worker() {
  if (router_) router_->finish();  // its thread calls the others
  engine_.reset();
  actor_.reset();
}

std::string Worker::run() {
  router_->start();
  return leaving_.get();
}

void Worker::stop(const std::string& reason) {
  actor_->on_stop(reason);
}

wire::Hello Worker::make_hello(const WorkerOptions& options, const StageLink& link) const {
  return {.build_id = std::string(wire::build_id()),
          .schema_hash = std::string(wire::schema_hash()),
          .name = options.name,
          .incarnation = incarnation_,
          .host_id = host_id(),
          .pid = static_cast<std::uint32_t>(getpid()),
          .device = options.device,
          .num_threads = static_cast<std::uint32_t>(options.num_threads),
          .memory_bytes = options.memory_bytes,
          .endpoints = link.endpoints(),
          .link_key = link.public_key()};
}

void Worker::take_step(wire::StepCommand command) {
  const std::uint64_t epoch = command.epoch;
  if (engine_->push_step(std::move(command))) return;
  engine_->abort(epoch);
  actor_->on_engine(
      EpochFailed{.epoch = epoch,
                  .status = resource_exhausted(str_cat("over ", EngineThread::kMaxQueuedSteps,
                                                       " steps wait at this rank"))});
}

}  // namespace brigade::worker
