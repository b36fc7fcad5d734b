// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "common/base/metrics.h"
#include "router/api/http/gate.h"

namespace brigade::router {

/// Upper edges in seconds of what is done in microseconds when all goes well.
inline constexpr std::array<double, 16> kDeliveryEdges = {
    50e-6,  100e-6, 150e-6, 200e-6, 300e-6, 500e-6, 750e-6, 0.001,
    1.5e-3, 2.5e-3, 5e-3,   10e-3,  25e-3,  100e-3, 1,      10};

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
  /// From the arrival of a step's result to the end of the write that has its event.
  Histogram delivery_s{kDeliveryEdges};
};

/// What the door itself counts, as it is at one moment.
struct DoorMetrics {
  HttpCounts counts;
  std::array<std::uint64_t, kRefusalNames.size()> refusals{};
  std::uint64_t open_connections = 0;
  std::uint64_t access_log_dropped = 0;
};

}  // namespace brigade::router
