// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench/recorder.h"

namespace brigade::tools {

/// A run as it is told to people and programs.
struct Report {
  std::string url;
  std::string model;
  std::vector<std::pair<std::string, std::string>> settings;  ///< what was asked for, in words
  Slo slo;
  bool interrupted = false;
  RunStats stats;
};

struct NamedLatency {
  const char* key;    ///< in JSON
  const char* title;  ///< for people
  const LatencyHistogram* values;
};
/// The ones that every report shows.
[[nodiscard]] std::array<NamedLatency, 4> latencies_of(const RunStats& stats);

/// Rows of `name, p50, p90, p99, max, mean`, and the counts, for a terminal.
[[nodiscard]] std::string report_text(const Report& report);
[[nodiscard]] std::string report_json(const Report& report);
/// One page with its plots in it (SVG): no script, nothing from elsewhere.
[[nodiscard]] std::string report_html(const Report& report);

/// `429 rate_limit_exceeded: 12` and so on, one a line of both reports for people.
[[nodiscard]] std::vector<std::string> summary_lines(const Report& report);

}  // namespace brigade::tools
