// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "router/api/http/gate.h"

namespace brigade::router {

/// Events of a server since its start.
struct HttpCounts {
  /// By route and status; 0: the connection ended without an answer.
  std::map<std::pair<std::string_view, int>, std::uint64_t> requests;
  std::uint64_t connections = 0;          ///< taken
  std::uint64_t connections_refused = 0;  ///< over the limit
  std::uint64_t peers_refused = 0;        ///< not in the list of addresses
  std::uint64_t handshakes_failed = 0;    ///< of TLS
  std::uint64_t slow_clients = 0;         ///< cut because they did not read, or sent too slowly
  std::uint64_t bytes_sent = 0;           ///< of answers, before TLS
};

/// What the door itself counts, as it is at one moment.
struct DoorMetrics {
  HttpCounts counts;
  std::array<std::uint64_t, kRefusalNames.size()> refusals{};
  std::uint64_t open_connections = 0;
  std::uint64_t access_log_dropped = 0;
};

}  // namespace brigade::router
