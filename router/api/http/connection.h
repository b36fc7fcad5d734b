// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "router/api/http/access_log.h"
#include "router/api/http/address_list.h"
#include "router/api/http/door_metrics.h"
#include "router/api/http/gate.h"
#include "router/api/http/head.h"
#include "router/api/http/http.h"
#include "router/api/http/request_parser.h"
#include "router/api/http/routes.h"
#include "router/api/http/server.h"
#include "router/api/http/socket.h"
#include "router/api/http/tls.h"

namespace brigade::router {

class Connection;

/// What all listeners of a server share. I/O thread only.
struct ServerShared {
  Gate gate{};
  HttpCounts counts{};
  std::unique_ptr<AccessLog> access_log{};  ///< null: none
  std::size_t body_bytes = 0;               ///< promised by the bodies being read
  bool stopping = false;
};

/// Which routes a listener has, besides the open ones.
struct Surface {
  bool inference = true;
  bool admin = true;  ///< and metrics
};

/// What the connections of a listener share. I/O thread only.
struct ServerCore {
  const HttpOptions& options;
  Routes& routes;
  ServerShared& shared;
  Surface surface{};
  AddressList allowed_peers{};
  std::shared_ptr<const TlsContext> tls{};  ///< null: none
  HeadRules rules{};
  std::unordered_set<std::shared_ptr<Connection>> connections{};
  std::size_t num_refused = 0;  ///< of `connections`, those that were over the limit
};

/// One client's socket: one request at a time, from its first byte to the last byte of its answer.
/// A read is pending at all times, so that a client that leaves is seen at once; what it brings
/// while an answer is in work is the next request.
///
///     kHandshake -> kHead -> kBody -> kWork -> kHead ... -> kLinger -> kClosed
class Connection final : public Exchange, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::unique_ptr<ClientSocket> socket, boost::asio::ip::address peer, ServerCore& core);

  void start();
  /// Answers 503 to whatever is asked, and closes: there are too many connections.
  void refuse();
  /// The server stops: closes unless a request is in work.
  void close_if_idle();
  /// The server stops now: what is in work ends with an error.
  void shut_down();

  void reply(HttpReply reply) override;
  void begin_stream() override;
  void send(std::string_view event, TimePoint result_at) override;
  void end_stream(std::string_view last_event, bool close) override;
  void count_tokens(std::uint32_t prompt, std::uint32_t completion) override;
  [[nodiscard]] RequestRecord& record() override { return record_; }
  void reset() override;

 private:
  enum class Phase : std::uint8_t { kHandshake, kHead, kBody, kWork, kLinger, kClosed };

  void configure();
  void on_handshake(bool failed);
  // Reading.
  void read();
  void on_read(bool failed, bool eof, std::size_t size);
  void on_read_end(bool eof);
  void parse();
  bool accept_head();
  std::optional<ApiError> check_head_of_request();
  void dispatch();
  void reject(const ApiError& error);
  // Writing (connection_write.cpp).
  void append_head(int status, std::string_view content_type);
  void append_event(std::string_view event);
  void flush();
  std::size_t write_now();
  void write_some();
  void on_write(bool failed, std::size_t size);
  void observe_delivery(TimePoint since);
  void answered();
  void end_record();
  void linger();
  void close();
  // Time.
  void set_deadline(TimePoint deadline);
  void arm_timer(TimePoint at);
  void on_timer();
  void on_deadline(TimePoint now);

  std::unique_ptr<ClientSocket> socket_;
  boost::asio::ip::address peer_;
  boost::asio::steady_timer timer_;
  ServerCore& core_;
  Phase phase_ = Phase::kHandshake;
  bool refused_ = false;  ///< counted in core_.num_refused

  // The request.
  std::array<char, 4096> chunk_{};  ///< where the pending read writes
  std::string input_;               ///< read, not yet parsed
  std::optional<RequestParser> parser_;
  std::size_t reserved_bytes_ = 0;  ///< our part of core_.shared.body_bytes
  std::size_t window_bytes_ = 0;    ///< of body, in the current window
  bool reading_ = false;
  bool http_1_1_ = true;
  bool keep_alive_ = false;
  bool is_head_request_ = false;
  RequestRecord record_;
  Routes::Info route_;
  std::string cors_;                  ///< header lines of every answer to this request
  std::shared_ptr<Account> account_;  ///< of the request's key
  std::optional<Ticket> ticket_;

  // The answer.
  std::shared_ptr<Call> call_;  ///< null once the answer is complete
  std::string pending_;         ///< to be written after out_
  std::string out_;             ///< being written
  std::size_t written_ = 0;     ///< of out_
  TimePoint pending_since_{};   ///< Exchange::send's result_at of the oldest event in pending_
  TimePoint out_since_{};       ///< and in out_
  bool writing_ = false;
  bool finished_ = false;  ///< the answer is complete in pending_ and out_
  bool close_after_ = false;
  bool peer_ended_ = false;  ///< nothing more will come

  TimePoint deadline_{};
  TimePoint armed_for_{};
  bool timer_armed_ = false;
  TimePoint work_started_{};
  TimePoint last_progress_{};  ///< of writing
};

}  // namespace brigade::router
