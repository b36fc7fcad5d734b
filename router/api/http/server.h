// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "router/api/service.h"

namespace brigade::router {

struct ListenAddress {
  std::string host = "127.0.0.1";  ///< an address, or localhost
  std::uint16_t port = 0;          ///< 0: a free one
};

struct HttpOptions {
  ListenAddress at;
  /// Where status, drain and metrics are served instead of at `at`. On a loopback address it is
  /// without TLS.
  std::optional<ListenAddress> admin;
  /// Needed for any address but loopback that has not both keys and TLS.
  bool allow_remote = false;
  std::string api_keys;         ///< file of `brigade api-keys`; empty: no key is asked for
  std::string local_key;        ///< with api_keys: one more key, that may do everything
  std::string tls_certificate;  ///< PEM files; empty: no TLS
  std::string tls_key;
  /// Names besides localhost that Host may have on a loopback address.
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allow_addresses;        ///< see AddressList; of clients at `at`
  std::vector<std::string> admin_allow_addresses;  ///< of clients at `admin`
  std::vector<std::string> cors_origins;           ///< whose pages may read answers
  std::string access_log;                          ///< file, or `-` for standard error; empty: none
  bool access_log_prompts = false;                 ///< with the bodies of requests
  bool vllm_metrics = false;                       ///< /metrics has vLLM's names too
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
  /// unless it has keys and TLS, or allow_remote; kUnavailable when it cannot be bound; whatever is
  /// wrong with the files.
  static Result<std::unique_ptr<HttpServer>> start(HttpOptions options, Service& service);
  /// Stops at once if stop() has not been called.
  ~HttpServer();

  /// host:port with the real port; an IPv6 host in brackets.
  [[nodiscard]] std::string address() const;
  /// http:// or https:// before it.
  [[nodiscard]] std::string url() const;
  /// Of the admin address; url() when there is none of its own.
  [[nodiscard]] std::string admin_url() const;

  /// Opens the access log by its name and reads the keys, certificate and TLS key again;
  /// connections and requests go on. On an error (of any of them) what was there stays, all of it.
  Status reload();

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
