// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "router/core/types.h"

namespace brigade::router {

/// One entry of /v1/models.
[[nodiscard]] std::string model_json(const ServedModel& model, std::int64_t created_s);

/// {"replicas":[{"id","model","state","epoch","running","steps","kv_blocks":{"total","used","cached"},
///   "ranks":[{"worker","pid","host","state","tp_rank","pp_stage","layers":[begin,end],"load_fraction","busy_fraction",
///            "bubble_fraction"}]}],
///  "queue":{"requests","tokens","buckets":[{"max_tokens","requests"}]},"idle_workers",
///  "requests":{"accepted","completed","failed","cancelled","refused","in_flight"},"generated_tokens",
///  "preempted","failed_over"}
[[nodiscard]] std::string status_json(const RouterStatus& status);

}  // namespace brigade::router
