// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace brigade::tools {

struct ReplayOptions {
  std::string file;
  std::vector<std::string> models;  ///< in place of the paths in the trace, in its order
  bool steps = false;               ///< print every event and decision
  std::uint64_t request = 0;        ///< only of this request; 0: of all
};

/// Runs a decision trace through the router's core again, checks that it decides the same, and
/// prints what it decided and what each request waited for.
[[nodiscard]] Status replay(const ReplayOptions& options);

}  // namespace brigade::tools
