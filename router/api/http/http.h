// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/time.h"
#include "router/api/http/record.h"

namespace brigade::router {

/// A whole request, checked as HTTP. `path` is what came before '?', as sent.
struct HttpRequest {
  std::string method;
  std::string path;
  std::string body;
  /// The client's X-Request-Id when it is fit to be echoed, else one of ours.
  std::string request_id;
  /// It may do what only operators may: it has the key for that, or, where there are no keys, comes
  /// from this machine.
  bool is_operator = false;
};

/// A whole answer. `Content-Length`, `Connection` and `X-Request-Id` are added by the connection.
struct HttpReply {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  bool close = false;  ///< the connection ends with this answer
};

[[nodiscard]] std::string_view reason_phrase(int status);

/// The one answer to one request. Used on the I/O thread only. After the client has gone every call
/// does nothing.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// The whole answer, once, instead of a stream.
  virtual void reply(HttpReply reply) = 0;
  /// 200 with text/event-stream; chunks follow.
  virtual void begin_stream() = 0;
  /// One event, whole, as one chunk. A client that is too far behind is cut: on_gone() of the call
  /// comes from here. `result_at`: when the result that it tells came from the worker, if one did.
  virtual void send(std::string_view event, TimePoint result_at = {}) = 0;
  /// The stream's last event and its orderly end; with `close` the connection ends too.
  virtual void end_stream(std::string_view last_event, bool close) = 0;
  /// Tokens that the request has used, as they come: charged to its key.
  virtual void count_tokens(std::uint32_t prompt, std::uint32_t completion) = 0;
  /// What is known of the request.
  [[nodiscard]] virtual RequestRecord& record() = 0;
  /// Cuts the socket: the only honest end of a stream that can neither finish nor say why.
  virtual void reset() = 0;
};

/// Work behind a request whose answer is not there yet.
class Call {
 public:
  virtual ~Call() = default;
  /// The client has gone or was cut: free everything at once. Nothing may be sent any more.
  virtual void on_gone() = 0;
  /// The server stops now: answer with an error.
  virtual void on_shutdown() = 0;
};

}  // namespace brigade::router
