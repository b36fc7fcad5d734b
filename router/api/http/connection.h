// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "router/api/http/head.h"
#include "router/api/http/http.h"
#include "router/api/http/request_parser.h"
#include "router/api/http/routes.h"
#include "router/api/http/server.h"

namespace brigade::router {

class Connection;

/// What the connections of a server share. I/O thread only.
struct ServerCore {
  const HttpOptions& options;
  Routes& routes;
  HeadRules rules;
  std::unordered_set<std::shared_ptr<Connection>> connections{};
  std::size_t num_refused = 0;  ///< of `connections`, those that were over the limit
  std::size_t body_bytes = 0;   ///< promised by the bodies being read
  bool stopping = false;
};

/// One client's socket: one request at a time, from its first byte to the last byte of its answer.
/// A read is pending at all times, so that a client that leaves is seen at once; what it brings
/// while an answer is in work is the next request.
///
///     kHead -> kBody -> kWork -> kHead ... -> kLinger -> kClosed
class Connection final : public Exchange, public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, ServerCore& core);

  void start();
  /// Answers 503 to whatever is asked, and closes: there are too many connections.
  void refuse();
  /// The server stops: closes unless a request is in work.
  void close_if_idle();
  /// The server stops now: what is in work ends with an error.
  void shut_down();

  void reply(HttpReply reply) override;
  void begin_stream() override;
  void send(std::string_view event) override;
  void end_stream(bool close) override;
  void reset() override;

 private:
  enum class Phase : std::uint8_t { kHead, kBody, kWork, kLinger, kClosed };

  void configure();
  // Reading.
  void read();
  void on_read(bool failed, bool eof, std::size_t size);
  void on_read_end(bool eof);
  void parse();
  bool accept_head();
  void dispatch();
  void reject(const ApiError& error);
  // Writing.
  void append_head(int status, std::string_view content_type);
  void flush();
  void write_some();
  void on_write(bool failed, std::size_t size);
  void answered();
  void linger();
  void close();
  // Time.
  void set_deadline(TimePoint deadline);
  void arm_timer(TimePoint at);
  void on_timer();
  void on_deadline(TimePoint now);

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  ServerCore& core_;
  Phase phase_ = Phase::kHead;
  bool from_loopback_ = false;
  bool refused_ = false;  ///< counted in core_.num_refused

  // The request.
  std::array<char, 4096> chunk_{};  ///< where the pending read writes
  std::string input_;               ///< read, not yet parsed
  std::optional<RequestParser> parser_;
  std::size_t reserved_bytes_ = 0;  ///< our part of core_.body_bytes
  std::size_t window_bytes_ = 0;    ///< of body, in the current window
  bool reading_ = false;
  bool http_1_1_ = true;
  bool keep_alive_ = false;
  bool is_head_request_ = false;
  std::string request_id_;

  // The answer.
  std::shared_ptr<Call> call_;  ///< null once the answer is complete
  std::string pending_;         ///< to be written after out_
  std::string out_;             ///< being written
  std::size_t written_ = 0;     ///< of out_
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
