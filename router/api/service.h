// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/time.h"
#include "router/core/stats.h"
#include "router/core/types.h"

namespace brigade::router {

/// Where a request's outputs go. Called from the router's thread: must not block (post to your own
/// thread).
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  /// `result_at`: when the step's result that it comes of reached this process; the epoch: of none.
  virtual void on_output(Output output, TimePoint result_at = {}) = 0;
  /// What the router's log calls the request besides its number: what its client calls it.
  [[nodiscard]] virtual std::string_view label() const { return ""; }
};

/// What a door (HTTP, router socket) asks of the router. Thread-safe, never blocks: answers come by
/// callback on the router's thread.
class Service {
 public:
  virtual ~Service() = default;

  [[nodiscard]] virtual const std::vector<std::shared_ptr<const ServedModel>>& models() const = 0;
  /// Null when there is none of that name.
  [[nodiscard]] virtual std::shared_ptr<const ServedModel> find_model(
      std::string_view name) const = 0;

  /// Gives the request its id and hands it over. A refusal arrives at the sink as an Output with
  /// kError.
  virtual RequestId submit(Request request, std::shared_ptr<OutputSink> sink) = 0;
  virtual void cancel(RequestId request) = 0;
  virtual void status(std::function<void(RouterStatus)> done) = 0;
  virtual void metrics(std::function<void(RouterMetrics)> done) = 0;
  virtual void drain(ReplicaId replica, std::function<void(Status)> done) = 0;

  /// At least one replica is ready.
  [[nodiscard]] virtual bool ready() const = 0;
  /// False once shutdown has begun.
  [[nodiscard]] virtual bool accepting() const = 0;

  /// Runs `job` on the tokenizer pool, off the dispatch path. False when its bounded queue is full
  /// (answer 503).
  [[nodiscard]] virtual bool run_in_pool(std::function<void()> job) = 0;
};

}  // namespace brigade::router
