// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/http/error.h"
#include "router/api/http/request_parser.h"

namespace brigade::router {

struct HeadRules {
  std::size_t max_fields = 100;
  /// The server listens on this machine alone: a Host that is a foreign name came through a rebound
  /// DNS name, from a web page, and is refused.
  bool loopback_only = true;
  std::vector<std::string> allowed_hosts;  ///< further names that are ours
};

/// Refuses what could be read in two ways (framing, Host, target) or is not supported, before any
/// of the body is read.
[[nodiscard]] std::optional<ApiError> check_head(const RequestHead& head, const HeadRules& rules);

/// The target without its query.
[[nodiscard]] std::string_view path_of(std::string_view target);

/// The client's id when it is fit to be echoed (1 to 128 printable characters), else none.
[[nodiscard]] std::optional<std::string> request_id_of(const RequestHead& head);

}  // namespace brigade::router
