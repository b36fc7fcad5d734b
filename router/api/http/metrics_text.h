// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "router/api/http/door_metrics.h"
#include "router/core/stats.h"

namespace brigade::router {

/// All of it in Prometheus's text format, version 0.0.4. `names` are the served models', in the
/// order of `metrics.models`; with `vllm` also under vLLM's names, where the meaning is the same.
[[nodiscard]] std::string metrics_text(const RouterMetrics& metrics, const DoorMetrics& door,
                                       const std::vector<std::string>& names, bool vllm);

}  // namespace brigade::router
