// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/connection.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

#include "common/base/check.h"
#include "router/api/http/context.h"

namespace brigade::router {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// What a client may send ahead while its request is in work. Pipelining clients send little
/// requests.
constexpr std::size_t kMaxAhead = 64 << 10;
/// A stop does not wait for clients that keep their end open.
constexpr Duration kStopLinger = std::chrono::milliseconds(200);

void append_chunk(std::string& out, std::string_view data) {
  static constexpr char kHex[] = "0123456789abcdef";
  char digits[16];
  std::size_t n = 0;
  for (std::size_t size = data.size(); size > 0; size >>= 4)
    digits[n++] = kHex[size & 15];
  while (n > 0)
    out += digits[--n];
  out += "\r\n";
  out += data;
  out += "\r\n";
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ServerCore& core)
    : socket_(std::move(socket)), timer_(socket_.get_executor()), core_(core) {}

void Connection::configure() {
  error_code ec;
  socket_.set_option(asio::ip::tcp::no_delay(true), ec);
  socket_.set_option(asio::socket_base::send_buffer_size(core_.options.send_buffer_bytes), ec);
  socket_.set_option(asio::socket_base::keep_alive(true), ec);
  // A host that died says nothing: its unacknowledged data, or an unanswered probe, tells after a
  // minute.
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  using KeepIdle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  socket_.set_option(UserTimeout(60'000), ec);
  socket_.set_option(KeepIdle(30), ec);
  const auto peer = socket_.remote_endpoint(ec);
  if (ec) return;
  const auto address = peer.address();
  from_loopback_ = address.is_loopback() ||
                   (address.is_v6() && address.to_v6().is_v4_mapped() &&
                    asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback());
}

void Connection::start() {
  configure();
  set_deadline(Clock::now() + core_.options.header_timeout);
  read();
}

void Connection::refuse() {
  configure();
  refused_ = true;
  ++core_.num_refused;
  reject(overloaded("Too many connections."));
}

void Connection::close_if_idle() {
  if (phase_ == Phase::kHead && !parser_) close();
}

void Connection::shut_down() {
  if (phase_ == Phase::kWork && call_ != nullptr) {
    const std::shared_ptr<Call> call = call_;
    call->on_shutdown();
  } else if (phase_ != Phase::kWork) {
    close();
  }
}

void Connection::read() {
  if (reading_ || peer_ended_ || phase_ == Phase::kClosed) return;
  reading_ = true;
  socket_.async_read_some(asio::buffer(chunk_),
                          [self = shared_from_this()](const error_code& ec, std::size_t size) {
                            self->on_read(static_cast<bool>(ec), ec == asio::error::eof, size);
                          });
}

void Connection::on_read(bool failed, bool eof, std::size_t size) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (failed) return on_read_end(eof);
  if (phase_ != Phase::kLinger) {
    input_.append(chunk_.data(), size);
    window_bytes_ += size;
  }
  if (phase_ == Phase::kWork) {
    if (input_.size() > kMaxAhead) return reset();
  } else if (phase_ != Phase::kLinger) {
    parse();
  }
  read();
}

void Connection::on_read_end(bool eof) {
  peer_ended_ = true;
  // A half close looks like a close: only an answer that is complete goes on.
  if (eof && phase_ == Phase::kWork && finished_) {
    close_after_ = true;
  } else {
    close();
  }
}

void Connection::parse() {
  while (phase_ == Phase::kHead || phase_ == Phase::kBody) {
    if (!parser_) {
      // Some clients end a body with a line break that belongs to nothing.
      input_.erase(0, std::min(input_.find_first_not_of("\r\n"), input_.size()));
      if (input_.empty()) return;
      parser_.emplace(core_.options.max_header_bytes, core_.options.max_body_bytes);
      http_1_1_ = true;
      is_head_request_ = false;
      request_id_.clear();
      set_deadline(Clock::now() + core_.options.header_timeout);
    }
    // A client that speaks HTTP/2 from the start (a gRPC probe) understands nothing but a close.
    if (phase_ == Phase::kHead && input_.starts_with("PRI ")) return close();
    const RequestParser::Step step = parser_->put(input_);
    input_.erase(0, step.used);
    switch (step.event) {
      case RequestParser::Event::kNeedMore:
        return;
      case RequestParser::Event::kHead:
        if (!accept_head()) return;
        break;
      case RequestParser::Event::kDone:
        return dispatch();
      case RequestParser::Event::kError:
        return reject(parser_->error());
    }
  }
}

bool Connection::accept_head() {
  const RequestHead& head = parser_->head();
  http_1_1_ = head.http_1_1;
  keep_alive_ = head.keep_alive;
  is_head_request_ = head.method == "HEAD";
  request_id_ = request_id_of(head).value_or(make_id("req-"));
  const HttpOptions& options = core_.options;
  if (auto error = check_head(head, core_.rules)) return reject(*error), false;
  const std::size_t length = head.chunked
                                 ? options.max_body_bytes
                                 : static_cast<std::size_t>(head.content_length.value_or(0));
  if (core_.body_bytes + length > options.max_total_body_bytes) {
    return reject(overloaded("Too many bodies are being read.")), false;
  }
  reserved_bytes_ = length;
  core_.body_bytes += length;
  if (length == 0) return true;
  phase_ = Phase::kBody;
  window_bytes_ = 0;
  set_deadline(Clock::now() + options.body_window);
  if (head.count("expect") > 0) {
    pending_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
  return true;
}

void Connection::dispatch() {
  const RequestHead& head = parser_->head();
  HttpRequest request{.method = head.method,
                      .path = std::string(path_of(head.target)),
                      .body = parser_->take_body(),
                      .request_id = request_id_,
                      .from_loopback = from_loopback_};
  parser_.reset();
  core_.body_bytes -= std::exchange(reserved_bytes_, 0);
  phase_ = Phase::kWork;
  work_started_ = Clock::now();
  set_deadline(work_started_ + core_.options.write_timeout);
  auto call = core_.routes.handle(std::move(request), shared_from_this());
  if (phase_ == Phase::kWork && !finished_) {
    INVARIANT(call != nullptr) << "a request without an answer: " << request_id_;
    call_ = std::move(call);
  }
}

/// For what never becomes a request: what follows on the connection cannot be trusted.
void Connection::reject(const ApiError& error) {
  parser_.reset();
  core_.body_bytes -= std::exchange(reserved_bytes_, 0);
  if (request_id_.empty()) request_id_ = make_id("req-");
  phase_ = Phase::kWork;
  work_started_ = Clock::now();
  keep_alive_ = false;
  set_deadline(work_started_ + core_.options.write_timeout);
  reply(to_reply(error));
}

void Connection::append_head(int status, std::string_view content_type) {
  pending_ += http_1_1_ ? "HTTP/1.1 " : "HTTP/1.0 ";
  pending_ += std::to_string(status);
  pending_ += ' ';
  pending_ += reason_phrase(status);
  pending_ += "\r\nContent-Type: ";
  pending_ += content_type;
  pending_ += "\r\nX-Request-Id: ";
  pending_ += request_id_;
  if (close_after_) {
    pending_ += "\r\nConnection: close";
  } else if (!http_1_1_) {
    pending_ += "\r\nConnection: keep-alive";
  }
  pending_ += "\r\n";
}

void Connection::reply(HttpReply reply) {
  if (phase_ != Phase::kWork || finished_) return;
  close_after_ = close_after_ || reply.close || !keep_alive_ || core_.stopping;
  append_head(reply.status, reply.content_type);
  for (const auto& [name, value] : reply.headers)
    pending_ += name + ": " + value + "\r\n";
  pending_ += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n";
  if (!is_head_request_) pending_ += reply.body;
  finished_ = true;
  call_ = nullptr;
  flush();
}

void Connection::begin_stream() {
  if (phase_ != Phase::kWork || finished_) return;
  close_after_ = close_after_ || !keep_alive_ || !http_1_1_ || core_.stopping;
  append_head(200, "text/event-stream; charset=utf-8");
  pending_ += "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  pending_ += http_1_1_ ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n";
}

void Connection::send(std::string_view event) {
  if (phase_ != Phase::kWork || finished_) return;
  if (pending_.size() + event.size() > core_.options.max_stream_bytes && writing_) return reset();
  if (http_1_1_) {
    append_chunk(pending_, event);
  } else {
    pending_ += event;
  }
  flush();
}

void Connection::end_stream(bool close) {
  if (phase_ != Phase::kWork || finished_) return;
  close_after_ = close_after_ || close || core_.stopping;
  if (http_1_1_) pending_ += "0\r\n\r\n";
  finished_ = true;
  call_ = nullptr;
  flush();
}

void Connection::reset() {
  error_code ec;
  if (phase_ != Phase::kClosed) socket_.set_option(asio::socket_base::linger(true, 0), ec);
  close();
}

void Connection::flush() {
  if (writing_ || pending_.empty() || phase_ == Phase::kClosed) return;
  writing_ = true;
  written_ = 0;
  out_.swap(pending_);
  last_progress_ = Clock::now();
  write_some();
}

void Connection::write_some() {
  socket_.async_write_some(asio::buffer(out_) + written_,
                           [self = shared_from_this()](const error_code& ec, std::size_t size) {
                             self->on_write(static_cast<bool>(ec), size);
                           });
}

void Connection::on_write(bool failed, std::size_t size) {
  if (phase_ == Phase::kClosed) return;
  if (failed) return close();
  written_ += size;
  last_progress_ = Clock::now();
  if (written_ < out_.size()) return write_some();
  out_.clear();
  writing_ = false;
  if (!pending_.empty()) return flush();
  if (out_.capacity() > core_.options.max_stream_bytes) out_.shrink_to_fit();
  if (finished_) answered();
}

void Connection::answered() {
  finished_ = false;
  if (close_after_) return linger();
  phase_ = Phase::kHead;
  set_deadline(Clock::now() + core_.options.idle_timeout);
  parse();
  read();
}

/// Closing with unread input would reset the connection, and the answer might never arrive.
void Connection::linger() {
  error_code ec;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ec);
  if (ec || peer_ended_) return close();
  phase_ = Phase::kLinger;
  input_.clear();
  const Duration patience = core_.options.linger_timeout;
  set_deadline(Clock::now() + (core_.stopping ? std::min(patience, kStopLinger) : patience));
  read();
}

void Connection::close() {
  if (std::exchange(phase_, Phase::kClosed) == Phase::kClosed) return;
  if (const auto call = std::exchange(call_, nullptr)) call->on_gone();
  core_.body_bytes -= std::exchange(reserved_bytes_, 0);
  if (refused_) --core_.num_refused;
  error_code ec;
  socket_.close(ec);
  timer_.cancel();
  core_.connections.erase(shared_from_this());
}

/// The timer is moved only when it would come too late: most deadlines never come.
void Connection::set_deadline(TimePoint deadline) {
  deadline_ = deadline;
  if (!timer_armed_ || deadline < armed_for_) arm_timer(deadline);
}

void Connection::arm_timer(TimePoint at) {
  timer_armed_ = true;
  armed_for_ = at;
  timer_.expires_at(at);
  timer_.async_wait([self = shared_from_this()](const error_code& ec) {
    if (!ec) self->on_timer();
  });
}

void Connection::on_timer() {
  if (phase_ == Phase::kClosed) return;
  timer_armed_ = false;
  const TimePoint now = Clock::now();
  if (now < deadline_) return arm_timer(deadline_);
  on_deadline(now);
}

void Connection::on_deadline(TimePoint now) {
  const HttpOptions& options = core_.options;
  const auto window_s = std::chrono::duration<double>(options.body_window).count();
  switch (phase_) {
    case Phase::kHead:
      if (!parser_) return close();
      return reject({.status = 408, .message = "The request's header did not arrive in time."});
    case Phase::kBody:
      if (static_cast<double>(window_bytes_) <
          static_cast<double>(options.min_body_rate) * window_s) {
        return reject({.status = 408, .message = "The request's body arrives too slowly."});
      }
      window_bytes_ = 0;
      return set_deadline(now + options.body_window);
    case Phase::kWork:
      if (writing_ && now >= last_progress_ + options.write_timeout) return reset();
      if (now >= work_started_ + options.work_timeout) return reset();
      return set_deadline((writing_ ? last_progress_ : now) + options.write_timeout);
    case Phase::kLinger:
    case Phase::kClosed:
      return close();
  }
}

}  // namespace brigade::router
