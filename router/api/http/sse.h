// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "router/api/http/error.h"

namespace brigade::router {

inline constexpr std::string_view kStreamEnd = "data: [DONE]\n\n";

/// The one form of an error in a stream that all known clients notice: a bare `data: {"error":..}`
/// counts as success for two load generators.
[[nodiscard]] inline std::string error_event(const ApiError& error) {
  return "event: error\ndata: " + to_json(error) + "\n\n";
}

}  // namespace brigade::router
