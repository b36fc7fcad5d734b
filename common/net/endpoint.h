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

/// This machine's address, as endpoints write it, on the way to `endpoint`: where peers that share
/// a network with that one reach us. 127.0.0.1 when the way is local, or there is none (yet): what
/// is bound there lets nobody in by mistake. Names are looked up.
[[nodiscard]] std::string address_towards(std::string_view endpoint);

}  // namespace brigade::net
