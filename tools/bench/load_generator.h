// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/time.h"
#include "tools/bench/recorder.h"
#include "tools/bench/workload.h"
#include "tools/http_client.h"

namespace brigade::tools {

/// How far a run has got.
struct LoadProgress {
  double elapsed_s = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t ended = 0;
};

struct LoadOptions {
  /// Closed loop: so many requests run at all times. Open loop: at most so many, the others are
  /// late.
  std::uint32_t concurrency = 1;
  std::optional<double> duration_s;  ///< no request starts after this; those that run may end
  std::uint32_t retries = 0;         ///< of a request that is refused, each after Retry-After
  Duration timeout = std::chrono::minutes(10);  ///< of a request
  /// The HTTP request that asks for it.
  std::function<std::string(const PlannedRequest&)> make_request;
  std::function<void(const LoadProgress&)> on_progress;  ///< five times a second; may be empty
};

/// Sends a workload's requests from one thread, and notes how they go.
class LoadGenerator final {
 public:
  /// kUnavailable when the host's name cannot be resolved.
  static Result<std::unique_ptr<LoadGenerator>> make(const HttpAddress& address);
  ~LoadGenerator();

  /// Returns when all requests have ended. False when SIGINT or SIGTERM came: then those that ran
  /// were cut. A second signal ends the process.
  [[nodiscard]] bool run(Workload& workload, const LoadOptions& options, Recorder& recorder);

 private:
  struct Impl;
  explicit LoadGenerator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::tools
