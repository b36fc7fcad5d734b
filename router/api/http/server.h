// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "router/api/service.h"

namespace brigade::router {

struct HttpOptions {
  std::string host = "127.0.0.1";  ///< an address, or localhost
  std::uint16_t port = 0;          ///< 0: a free one
  bool allow_remote = false;       ///< needed for any address but loopback: there is no key yet
  /// Names besides localhost that Host may have on a loopback address.
  std::vector<std::string> allowed_hosts;
  std::uint32_t num_threads = 1;  ///< 1 is the only value
  std::string version = "unknown";

  std::size_t max_connections = 4096;  ///< above: 503
  std::size_t max_header_bytes = 16 << 10;
  std::size_t max_body_bytes = 4 << 20;
  std::size_t max_total_body_bytes = std::size_t{512}
                                     << 20;  ///< of all requests being read; above: 503
  std::size_t max_stream_bytes = 256
                                 << 10;  ///< unread by a stream's client; above: cancelled and cut
  int send_buffer_bytes =
      64 << 10;  ///< SO_SNDBUF: the kernel's part of what a client leaves unread

  Duration header_timeout = std::chrono::seconds(10);
  /// Each must bring min_body_rate bytes a second.
  Duration body_window = std::chrono::seconds(10);
  std::size_t min_body_rate = 1 << 10;
  Duration idle_timeout = std::chrono::seconds(60);   ///< of a kept connection
  Duration write_timeout = std::chrono::seconds(30);  ///< without any byte taken
  /// For a whole answer or stream, whatever the router says.
  Duration work_timeout = std::chrono::minutes(30);
  /// Reading on after the last answer, so that it arrives.
  Duration linger_timeout = std::chrono::seconds(2);
};

/// The HTTP door: an OpenAI-compatible API on one thread of its own. What ends a request early (the
/// client leaves, half closes, or does not read) cancels it in the service at once. The service
/// must outlive the server, and its callbacks may come after stop(): they are dropped.
class HttpServer final {
 public:
  /// kInvalidArgument for an address that is none; kPermissionDenied for one that others can reach,
  /// without allow_remote; kUnavailable when it cannot be bound.
  static Result<std::unique_ptr<HttpServer>> start(HttpOptions options, Service& service);
  /// Stops at once if stop() has not been called.
  ~HttpServer();

  /// host:port with the real port; an IPv6 host in brackets.
  [[nodiscard]] std::string address() const;

  /// No new connections or requests from now on; idle connections close; answers in work go on
  /// until `deadline`, then end with an error. Returns when the thread has ended, at most half a
  /// second after the deadline.
  void stop(TimePoint deadline);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::router
