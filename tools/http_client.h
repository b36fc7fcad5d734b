// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/time.h"

namespace brigade::tools {

struct HttpAddress {
  std::string host;
  std::string port;
  bool tls = false;
  /// Whether the certificate must be good for `host`: by the system's issuers, or by those of the
  /// file that BRIGADE_CA_FILE names.
  bool verify = true;
  std::string api_key = {};  ///< sent with each request; empty: none

  /// `http://host:port` or `https://host:port`, IPv6 in brackets.
  [[nodiscard]] std::string url() const;
};

/// `http://HOST:PORT`, `https://HOST:PORT`, `HOST:PORT`, `[::1]:PORT`; a path after it is refused.
[[nodiscard]] Result<HttpAddress> parse_http_address(std::string_view text);

struct HttpResponse {
  unsigned status = 0;
  std::string body;
};

/// A small HTTP/1.1 client: one connection a call, a deadline on everything, no answer above 64 MiB
/// taken into memory. Errors: kUnavailable when nothing listens or the connection breaks,
/// kDeadlineExceeded. An HTTP error is a response.
class HttpClient final {
 public:
  explicit HttpClient(HttpAddress address) : address_(std::move(address)) {}

  [[nodiscard]] const HttpAddress& address() const { return address_; }

  [[nodiscard]] Result<HttpResponse> get(const std::string& path, Duration timeout) const;
  [[nodiscard]] Result<HttpResponse> post(const std::string& path, const std::string& json,
                                          Duration timeout) const;

  struct StreamOptions {
    Duration connect_timeout = std::chrono::seconds(5);
    Duration silence_timeout = std::chrono::seconds(600);  ///< between two pieces of the body
    bool stop_on_interrupt = false;  ///< SIGINT ends the call with kCancelled, and not the process
  };
  /// Posts and hands out the body of a 200 answer as it comes, in pieces cut anywhere; `on_piece`
  /// returns false to hang up. Of any other answer the body is in the response. kUnavailable when
  /// the body breaks off before its end.
  [[nodiscard]] Result<HttpResponse> post_stream(
      const std::string& path, const std::string& json, const StreamOptions& options,
      const std::function<bool(std::string_view)>& on_piece) const;

 private:
  HttpAddress address_;
};

}  // namespace brigade::tools
