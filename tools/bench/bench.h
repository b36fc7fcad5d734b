// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "tools/api_client.h"
#include "tools/bench/recorder.h"
#include "tools/bench/workload.h"

namespace brigade::tools {

struct BenchOptions {
  WorkloadOptions workload;
  std::string trace_file;         ///< empty: none
  std::uint32_t concurrency = 0;  ///< 0: 8 in a closed loop, 10,000 in an open one
  std::optional<double> duration_s;
  std::uint32_t warmup = 0;  ///< requests before the measured ones
  std::uint32_t retries = 0;
  double timeout_s = 600;
  bool chat = false;
  double temperature = 0;
  std::string model;  ///< empty: the first one served
  Slo slo;
  // As they were given, for the report.
  std::string prompt_text;
  std::string output_text;
  std::string slo_text;
  std::string json_file;  ///< `-`: standard output, in place of the table; empty: none
  std::string html_file;  ///< empty: none
};

/// Loads the router, prints a report, and writes the files that are asked for. An error when no
/// request could be completed.
[[nodiscard]] Status run_bench(const ApiClient& api, BenchOptions options);

}  // namespace brigade::tools
