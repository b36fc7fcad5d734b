// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "router/core/types.h"

namespace brigade::router {

struct RouterConfig;

/// Writes down all that goes into a Router and comes out of it, as lines of JSON, so that
/// router/replay can feed the same events to the same code again and see the same actions:
///
///     {"trace":1,"config":{...},"models":[{"name":...,"path":...,"digest":...,"max_context":...}]}
///     {"t":NS,"submit":{...}}        {"t":NS,"cancel":ID}        {"t":NS,"advance":true}
///     {"t":NS,"from":WORKER,"Heartbeat":{...}}      {"t":NS,"lost":WORKER,"reason":"..."}
///     {"t":NS,"drain":REPLICA}       {"t":NS,"close":true}
///     {"sends":[{"to":[WORKER,...],"StepCommand":{...}}],"outputs":[{...}]}
///
///     {"end":"why the trace goes no further"}
///
/// A line with actions follows the events that led to them. A number that is not finite is null;
/// times are in nanoseconds of the router's monotonic clock.
class Trace final {
 public:
  static constexpr int kVersion = 1;
  /// Takes a line without its newline; called on the thread that decides, so it must not block.
  using Sink = std::function<void(std::string line)>;

  explicit Trace(Sink sink) : sink_(std::move(sink)) {}

  void begin(const RouterConfig& config,
             const std::vector<std::shared_ptr<const ServedModel>>& models);
  void submit(const Request& request, TimePoint now);
  void cancel(RequestId request, TimePoint now);
  void message(WorkerId worker, const wire::FromWorker& message, TimePoint now);
  void worker_lost(WorkerId worker, const std::string& reason, TimePoint now);
  void drain(ReplicaId replica, TimePoint now);
  void close(TimePoint now);
  void advance(TimePoint now);
  /// Nothing when there are none.
  void actions(const Actions& actions);

  /// The last line of a trace that was cut off, and why.
  [[nodiscard]] static std::string end_line(const std::string& reason);

 private:
  Sink sink_;
};

}  // namespace brigade::router
