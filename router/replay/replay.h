// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "router/core/router.h"

namespace brigade::router {

/// A model as the first line of a trace names it.
struct TracedModel {
  std::string name;
  std::string path;
  std::string digest;
  std::int64_t max_context = 0;
};

struct TraceHeader {
  RouterConfig config;
  std::vector<TracedModel> models;
};

/// Of the first line of a trace. kDataLoss when it is none, or one of another version.
[[nodiscard]] Result<TraceHeader> read_trace_header(std::string_view line);

/// Opens the files that the header names, or `paths` in their stead where it has entries.
/// kFailedPrecondition when one is not the file that was served.
[[nodiscard]] Result<std::vector<std::shared_ptr<const ServedModel>>> load_traced_models(
    const TraceHeader& header, const std::vector<std::string>& paths);

struct CancelLine {
  RequestId request = 0;
};
struct MessageLine {
  WorkerId worker = 0;
  wire::FromWorker message;
};
struct WorkerLostLine {
  WorkerId worker = 0;
  std::string reason;
};
struct DrainLine {
  ReplicaId replica = 0;
};
struct CloseLine {};
struct AdvanceLine {};
/// The trace was cut off here.
struct EndLine {
  std::string reason;
};
/// What a line of a trace holds; Actions as the core took them again.
using TraceLine = std::variant<Request, CancelLine, MessageLine, WorkerLostLine, DrainLine,
                               CloseLine, AdvanceLine, EndLine, Actions>;

/// As the trace calls it: "Heartbeat".
[[nodiscard]] std::string_view name_of(const wire::FromWorker& message);
[[nodiscard]] std::string_view name_of(const wire::ToWorker& message);

/// Runs a trace through the core again. The core writes its own trace of it, which must be the same
/// to the byte: then it was told the same and decided the same.
class Replay final {
 public:
  Replay(const TraceHeader& header, std::vector<std::shared_ptr<const ServedModel>> models);

  /// Applies the next line after the header. kDataLoss when it cannot be read; kInternal when the
  /// core decides otherwise than it did: nothing more can be applied then.
  [[nodiscard]] Result<TraceLine> apply(std::string_view line);
  /// After the last line: kInternal when the core has more to do than was recorded.
  [[nodiscard]] Status finish();

  /// Of the last event.
  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] const Router& router() const { return *router_; }

 private:
  Status check(std::string_view recorded);

  std::string written_;  ///< the core's last line
  std::unique_ptr<Router> router_;
  TimePoint now_;
};

}  // namespace brigade::router
