// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/bench/arrivals.h"
#include "tools/bench/lengths.h"

namespace brigade::tools {

/// A line of a trace: `{"time": 1.5, "prompt_tokens": 300, "output_tokens": 40, "prefix_group":
/// 2}`.
struct TraceLine {
  double time_s = 0;  ///< since the first one's
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;
  std::optional<std::uint32_t> prefix_group;  ///< requests of one begin alike
};

/// JSON lines, sorted by time here; empty lines are passed over. kInvalidArgument names the line.
[[nodiscard]] Result<std::vector<TraceLine>> parse_trace(std::string_view text);
/// At most 256 MiB.
[[nodiscard]] Result<std::vector<TraceLine>> read_trace(const std::string& path);

struct WorkloadOptions {
  Lengths prompt_tokens = Lengths::always(128);
  Lengths output_tokens = Lengths::always(64);
  std::uint32_t shared_prefix = 0;  ///< tokens at the front of a prompt, the same within its group
  std::uint32_t prefix_groups = 1;
  double abandon = 0;  ///< the part of the requests whose client leaves before the end
  double rate = 0;     ///< requests a second; 0: a closed loop
  std::uint32_t burst = 1;
  std::optional<std::uint64_t>
      num_requests;              ///< nothing: without end (or as many as the trace has)
  std::vector<TraceLine> trace;  ///< not empty: lengths and times are these
  std::uint64_t seed = 1;
};

struct PlannedRequest {
  std::uint64_t index = 0;
  double due_s = 0;  ///< after the start; 0 in a closed loop
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;
  std::optional<std::uint32_t> prefix_group;
  /// The client leaves once it has so many tokens; 0: when the request has been sent.
  std::optional<std::uint32_t> abandon_after;
};

/// Which requests come, in order: the same for the same options.
class Workload final {
 public:
  explicit Workload(WorkloadOptions options);

  [[nodiscard]] bool open_loop() const { return options_.rate > 0 || !options_.trace.empty(); }
  /// Nothing when there is no end.
  [[nodiscard]] std::optional<std::uint64_t> size() const;
  [[nodiscard]] std::optional<PlannedRequest> next();

  /// Which word of a vocabulary of `num_words` each token of a prompt is: prompts differ but for
  /// their group's prefix.
  [[nodiscard]] std::vector<std::uint32_t> prompt(const PlannedRequest& request,
                                                  std::uint32_t num_words) const;

 private:
  WorkloadOptions options_;
  std::optional<Arrivals> arrivals_;
  std::uint64_t next_ = 0;
};

}  // namespace brigade::tools
