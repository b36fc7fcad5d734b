// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/connection.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

#include "common/base/check.h"
#include "router/api/http/context.h"
#include "router/api/http/cors.h"
#include "router/api/http/trace_context.h"

namespace brigade::router {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// What a client may send ahead while its request is in work. Pipelining clients send little
/// requests.
constexpr std::size_t kMaxAhead = 64 << 10;
}  // namespace

Connection::Connection(std::unique_ptr<ClientSocket> socket, asio::ip::address peer,
                       ServerCore& core)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      timer_(socket_->tcp().get_executor()),
      core_(core) {}

void Connection::configure() {
  error_code ec;
  asio::ip::tcp::socket& socket = socket_->tcp();
  socket.set_option(asio::ip::tcp::no_delay(true), ec);
  socket.set_option(asio::socket_base::send_buffer_size(core_.options.send_buffer_bytes), ec);
  socket.set_option(asio::socket_base::keep_alive(true), ec);
  // A host that died says nothing: its unacknowledged data, or an unanswered probe, tells after a
  // minute.
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  using KeepIdle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  socket.set_option(UserTimeout(60'000), ec);
  socket.set_option(KeepIdle(30), ec);
}

void Connection::start() {
  configure();
  set_deadline(Clock::now() + core_.options.header_timeout);
  socket_->async_handshake([self = shared_from_this()](const error_code& ec, std::size_t) {
    self->on_handshake(static_cast<bool>(ec));
  });
}

void Connection::on_handshake(bool failed) {
  if (phase_ == Phase::kClosed) return;
  if (failed) {
    ++core_.shared.counts.handshakes_failed;
    return close();
  }
  phase_ = Phase::kHead;
  read();
}

void Connection::refuse() {
  configure();
  refused_ = true;
  ++core_.num_refused;
  reject(overloaded("Too many connections."));
}

void Connection::close_if_idle() {
  if (phase_ == Phase::kHandshake || (phase_ == Phase::kHead && !parser_)) close();
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
  socket_->async_read_some(asio::buffer(chunk_),
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
      record_ = {};
      route_ = {};
      cors_.clear();
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
  record_.request_id = request_id_of(head).value_or(make_id("req-"));
  record_.method = head.method;
  record_.remote = peer_.to_string();
  record_.traceparent = traceparent_of(head);
  record_.started = Clock::now();
  if (auto error = check_head_of_request()) return reject(*error), false;
  const HttpOptions& options = core_.options;
  const std::size_t length = head.chunked
                                 ? options.max_body_bytes
                                 : static_cast<std::size_t>(head.content_length.value_or(0));
  if (core_.shared.body_bytes + length > options.max_total_body_bytes) {
    return reject(overloaded("Too many bodies are being read.")), false;
  }
  reserved_bytes_ = length;
  core_.shared.body_bytes += length;
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

/// What can be refused before the body is read: who is not let in sends none.
std::optional<ApiError> Connection::check_head_of_request() {
  const RequestHead& head = parser_->head();
  cors_ = cors_headers(head, core_.options.cors_origins);
  if (auto error = check_head(head, core_.rules)) return error;
  const std::string_view path = path_of(head.target);
  route_ = Routes::find(path);
  const bool here =
      route_.scope == Scope::kOpen ||
      (route_.scope == Scope::kInference ? core_.surface.inference : core_.surface.admin);
  if (!here) {
    route_ = {};
    return no_route(path);
  }
  record_.route = route_.path;
  if (head.method == "OPTIONS") return std::nullopt;  // a browser asks without the key
  if (auto error = core_.shared.gate.identify(head, route_.scope, account_)) return error;
  if (account_ != nullptr) {
    record_.key_id = account_->key().id;
    record_.tenant = account_->key().tenant;
  }
  return std::nullopt;
}

void Connection::dispatch() {
  const RequestHead& head = parser_->head();
  std::optional<HttpReply> at_once = answer_preflight(head, core_.options.cors_origins);
  const TimePoint now = Clock::now();
  if (account_ != nullptr && route_.scope == Scope::kInference && head.method == "POST") {
    if (auto error = core_.shared.gate.admit(*account_, now, ticket_)) at_once = to_reply(*error);
  }
  HttpRequest request{
      .method = head.method,
      .path = std::string(path_of(head.target)),
      .body = parser_->take_body(),
      .request_id = record_.request_id,
      .is_operator = core_.shared.gate.has_keys() ? account_ != nullptr : peer_.is_loopback()};
  if (core_.options.access_log_prompts && route_.scope == Scope::kInference) {
    record_.prompt = request.body;
  }
  parser_.reset();
  core_.shared.body_bytes -= std::exchange(reserved_bytes_, 0);
  phase_ = Phase::kWork;
  work_started_ = now;
  set_deadline(work_started_ + core_.options.write_timeout);
  if (at_once) return reply(std::move(*at_once));
  auto call = core_.routes.handle(std::move(request), shared_from_this());
  if (phase_ == Phase::kWork && !finished_) {
    INVARIANT(call != nullptr) << "a request without an answer: " << record_.request_id;
    call_ = std::move(call);
  }
}

/// For what never becomes a request: what follows on the connection cannot be trusted.
void Connection::reject(const ApiError& error) {
  parser_.reset();
  core_.shared.body_bytes -= std::exchange(reserved_bytes_, 0);
  if (record_.request_id.empty()) record_.request_id = make_id("req-");
  phase_ = Phase::kWork;
  work_started_ = Clock::now();
  if (record_.started == TimePoint{}) record_.started = work_started_;
  keep_alive_ = false;
  set_deadline(work_started_ + core_.options.write_timeout);
  reply(to_reply(error));
}

void Connection::close() {
  if (std::exchange(phase_, Phase::kClosed) == Phase::kClosed) return;
  if (const auto call = std::exchange(call_, nullptr)) call->on_gone();
  record_.cut = true;
  end_record();
  core_.shared.body_bytes -= std::exchange(reserved_bytes_, 0);
  if (refused_) --core_.num_refused;
  socket_->close();
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
        ++core_.shared.counts.slow_clients;
        return reject({.status = 408, .message = "The request's body arrives too slowly."});
      }
      window_bytes_ = 0;
      return set_deadline(now + options.body_window);
    case Phase::kWork:
      if (writing_ && now >= last_progress_ + options.write_timeout) {
        ++core_.shared.counts.slow_clients;
        return reset();
      }
      if (now >= work_started_ + options.work_timeout) return reset();
      return set_deadline((writing_ ? last_progress_ : now) + options.write_timeout);
    case Phase::kHandshake:
    case Phase::kLinger:
    case Phase::kClosed:
      return close();
  }
}

}  // namespace brigade::router
