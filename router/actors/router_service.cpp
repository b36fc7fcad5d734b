// SPDX-License-Identifier: Apache-2.0
#include "router/actors/router_service.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::router {
namespace {

/// How long ended requests' last outputs, and released workers' goodbyes, may take.
constexpr Duration kWindDown = std::chrono::seconds(2);
constexpr std::uint32_t kRetryAfterS = 1;

Output refusal(RequestId request, Status status) {
  Output output;
  output.request = request;
  output.finish = wire::FinishReason::kError;
  output.status = std::move(status);
  output.retry_after_s = kRetryAfterS;
  output.drop_reason = wire::drop_reason_of(output.status.code(), /*computed=*/false);
  return output;
}

}  // namespace

Result<std::unique_ptr<RouterService>> RouterService::start(net::Context& context,
                                                            RouterServiceOptions options) {
  std::unique_ptr<RouterService> service(new RouterService(options));
  RETURN_IF_ERROR(service->open_worker_door(context, options));
  RouterService* self = service.get();
  service->dispatcher_ = std::make_unique<DispatcherActor>(
      service->system_,
      DispatcherOptions{
          .config = std::move(options.config),
          .models = std::move(options.models),
          .send =
              [self](std::vector<WorkerSend>& sends) { return self->worker_door_->send(sends); },
          .on_replicas = options.on_replicas ? options.on_replicas : [] {},
          .trace = std::move(options.trace)});
  service->worker_door_->start();
  return service;
}

RouterService::RouterService(RouterServiceOptions options)
    : models_(std::move(options.models)),
      pool_(
          std::make_unique<TokenizerPool>(options.tokenizer_threads, options.max_tokenizer_jobs)) {}

Status RouterService::open_worker_door(net::Context& context, const RouterServiceOptions& options) {
  ASSIGN_OR_RETURN(
      worker_door_,
      WorkerDoor::open(context,
                       {.endpoints = options.worker_endpoints,
                        .keys = options.keys,
                        .on_message =
                            [this](WorkerId worker, wire::FromWorker message) {
                              dispatcher_->post_always(
                                  WorkerMessageEvent{worker, std::move(message), Clock::now()});
                            },
                        .on_lost =
                            [this](WorkerId worker, std::string reason) {
                              dispatcher_->post_always(WorkerLostEvent{worker, std::move(reason)});
                            },
                        .congested = [this] { return dispatcher_->congested(); }}));
  return {};
}

RouterService::~RouterService() {
  stop(Clock::now());
  pool_.reset();
  dispatcher_.reset();
  worker_door_.reset();
}

void RouterService::close() {
  if (accepting_.exchange(false) && dispatcher_) dispatcher_->post_always(CloseEvent{});
}

void RouterService::end_requests() {
  dispatcher_->post_always(CancelAllEvent{});
}

void RouterService::stop(TimePoint deadline) {
  if (std::exchange(stopped_, true) || !dispatcher_) return;
  close();
  if (!dispatcher_->view().wait_idle(deadline)) {
    log_warning("ending requests that are still running");
    end_requests();
    if (!dispatcher_->view().wait_idle(Clock::now() + kWindDown)) {
      log_error("some requests did not end");
    }
  }
  worker_door_->stop("the router ends", Clock::now() + kWindDown);
}

const std::vector<std::string>& RouterService::worker_endpoints() const {
  return worker_door_->endpoints();
}

std::uint32_t RouterService::ready_replicas() const {
  return dispatcher_->view().ready_replicas();
}

std::shared_ptr<const ServedModel> RouterService::find_model(std::string_view name) const {
  for (const auto& model : models_) {
    if (model->name == name) return model;
  }
  return nullptr;
}

RequestId RouterService::submit(Request request, std::shared_ptr<OutputSink> sink) {
  const RequestId id = next_request_.fetch_add(1);
  request.id = id;
  if (!accepting()) {
    sink->on_output(refusal(id, unavailable("the router is shutting down")));
    return id;
  }
  dispatcher_->view().add_request();
  if (!dispatcher_->post(SubmitEvent{.request = std::move(request), .sink = sink})) {
    dispatcher_->view().end_requests(1);
    sink->on_output(refusal(id, resource_exhausted("the router's inbox is full")));
  }
  return id;
}

void RouterService::cancel(RequestId request) {
  dispatcher_->post_always(CancelEvent{request});
}

void RouterService::status(std::function<void(RouterStatus)> done) {
  dispatcher_->post_always(StatusEvent{std::move(done)});
}

void RouterService::metrics(std::function<void(RouterMetrics)> done) {
  dispatcher_->post_always(MetricsEvent{std::move(done)});
}

void RouterService::drain(ReplicaId replica, std::function<void(Status)> done) {
  dispatcher_->post_always(DrainEvent{.replica = replica, .done = std::move(done)});
}

bool RouterService::ready() const {
  return dispatcher_->view().ready();
}

bool RouterService::run_in_pool(std::function<void()> job) {
  return pool_->run(std::move(job));
}

}  // namespace brigade::router
