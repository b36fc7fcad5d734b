// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/actor/system.h"
#include "common/net/context.h"
#include "router/actors/dispatcher_actor.h"
#include "router/actors/tokenizer_pool.h"
#include "router/actors/worker_door.h"
#include "router/api/service.h"

namespace brigade::router {

struct RouterServiceOptions {
  RouterConfig config;
  std::vector<std::shared_ptr<const ServedModel>> models;
  std::vector<std::string> worker_endpoints;  ///< to bind
  std::optional<net::Keys> keys;              ///< of the worker door
  std::size_t tokenizer_threads = 2;
  std::size_t max_tokenizer_jobs = 1024;
  /// Called from the router's thread after the number of ready replicas has changed; must not
  /// block.
  std::function<void()> on_replicas;
  Trace::Sink trace;  ///< as DispatcherOptions::trace
};

/// The router of one process: the dispatcher actor, the door for workers, and the tokenizer pool.
/// Doors for clients are built on it as a Service.
class RouterService final : public Service {
 public:
  /// The doors' sockets live in `context`, which must outlive the service.
  static Result<std::unique_ptr<RouterService>> start(net::Context& context,
                                                      RouterServiceOptions options);
  /// Stops at once if stop() has not been called. Doors that hold the service must be gone.
  ~RouterService() override;

  /// From now on accepting() is false and requests are refused; running ones go on.
  void close();
  /// Ends all running requests now.
  void end_requests();
  /// close(), waits for running requests until the deadline, ends the rest, and releases all
  /// workers. Clients' doors must still run, so that answers arrive.
  void stop(TimePoint deadline);

  [[nodiscard]] const std::vector<std::string>& worker_endpoints() const;
  [[nodiscard]] std::uint32_t ready_replicas() const;

  [[nodiscard]] const std::vector<std::shared_ptr<const ServedModel>>& models() const override {
    return models_;
  }
  [[nodiscard]] std::shared_ptr<const ServedModel> find_model(std::string_view name) const override;
  RequestId submit(Request request, std::shared_ptr<OutputSink> sink) override;
  void cancel(RequestId request) override;
  void status(std::function<void(RouterStatus)> done) override;
  void metrics(std::function<void(RouterMetrics)> done) override;
  void drain(ReplicaId replica, std::function<void(Status)> done) override;
  [[nodiscard]] bool ready() const override;
  [[nodiscard]] bool accepting() const override { return accepting_.load(); }
  [[nodiscard]] bool run_in_pool(std::function<void()> job) override;

 private:
  explicit RouterService(RouterServiceOptions options);
  Status open_worker_door(net::Context& context, const RouterServiceOptions& options);

  std::vector<std::shared_ptr<const ServedModel>> models_;
  std::atomic<RequestId> next_request_ = 1;
  std::atomic<bool> accepting_ = true;
  bool stopped_ = false;

  // In the order of their ends, last to first: the pool's jobs and the door's thread call the
  // dispatcher, which sends by the door.
  actor::System system_;
  std::unique_ptr<WorkerDoor> worker_door_;
  std::unique_ptr<DispatcherActor> dispatcher_;
  std::unique_ptr<TokenizerPool> pool_;
};

}  // namespace brigade::router
