// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace brigade::net {

/// Reachable from this machine alone: ipc, inproc, tcp on 127.0.0.0/8 or [::1]. Names are not
/// looked up: `localhost` counts, no other does.
[[nodiscard]] bool is_local_endpoint(std::string_view endpoint);

/// tcp with host and port (a number or *), ipc with a path that fits a socket address (107 bytes),
/// or inproc.
[[nodiscard]] Status check_endpoint(std::string_view endpoint);

/// What libzmq reports of a bound socket, as people write it: an IPv4 address mapped into IPv6
/// becomes IPv4 again.
[[nodiscard]] std::string plain_endpoint(std::string_view endpoint);

}  // namespace brigade::net
