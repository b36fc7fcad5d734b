// SPDX-License-Identifier: Apache-2.0
// The answer's way to the client.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

#include "router/api/http/connection.h"

namespace brigade::router {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

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

void Connection::append_head(int status, std::string_view content_type) {
  record_.status = status;
  pending_ += http_1_1_ ? "HTTP/1.1 " : "HTTP/1.0 ";
  pending_ += std::to_string(status);
  pending_ += ' ';
  pending_ += reason_phrase(status);
  pending_ += "\r\nContent-Type: ";
  pending_ += content_type;
  pending_ += "\r\nX-Request-Id: ";
  pending_ += record_.request_id;
  if (close_after_) {
    pending_ += "\r\nConnection: close";
  } else if (!http_1_1_) {
    pending_ += "\r\nConnection: keep-alive";
  }
  pending_ += "\r\n";
  pending_ += cors_;
}

void Connection::reply(HttpReply reply) {
  if (phase_ != Phase::kWork || finished_) return;
  close_after_ = close_after_ || reply.close || !keep_alive_ || core_.shared.stopping;
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
  close_after_ = close_after_ || !keep_alive_ || !http_1_1_ || core_.shared.stopping;
  append_head(200, "text/event-stream; charset=utf-8");
  pending_ += "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  pending_ += http_1_1_ ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n";
}

void Connection::send(std::string_view event, TimePoint result_at) {
  if (phase_ != Phase::kWork || finished_) return;
  if (pending_.size() + event.size() > core_.options.max_stream_bytes && writing_) {
    ++core_.shared.counts.slow_clients;
    return reset();
  }
  if (pending_since_ == TimePoint{}) pending_since_ = result_at;
  append_event(event);
  flush();
}

void Connection::append_event(std::string_view event) {
  if (http_1_1_) {
    append_chunk(pending_, event);
  } else {
    pending_ += event;
  }
}

void Connection::end_stream(std::string_view last_event, bool close) {
  if (phase_ != Phase::kWork || finished_) return;
  append_event(last_event);
  close_after_ = close_after_ || close || core_.shared.stopping;
  if (http_1_1_) pending_ += "0\r\n\r\n";
  finished_ = true;
  call_ = nullptr;
  flush();
}

void Connection::reset() {
  error_code ec;
  if (phase_ != Phase::kClosed) socket_->tcp().set_option(asio::socket_base::linger(true, 0), ec);
  close();
}

void Connection::flush() {
  if (writing_ || pending_.empty() || phase_ == Phase::kClosed) return;
  const TimePoint since = std::exchange(pending_since_, TimePoint{});
  const std::size_t size = write_now();
  last_progress_ = Clock::now();
  if (size == pending_.size()) {
    observe_delivery(since);
    pending_.clear();
    return;
  }
  writing_ = true;
  written_ = size;
  out_.swap(pending_);
  out_since_ = since;
  write_some();
}

/// An event goes out here and now: a step has one for each of hundreds of streams, and each wait
/// for the reactor would make the last of them later. Not the end of an answer, behind which the
/// next request of the client begins: it is for a handler of its own.
std::size_t Connection::write_now() {
  if (finished_) return 0;
  const std::size_t size = socket_->write_now(asio::buffer(pending_));
  record_.bytes_sent += size;
  return size;
}

void Connection::write_some() {
  socket_->async_write_some(asio::buffer(out_) + written_,
                            [self = shared_from_this()](const error_code& ec, std::size_t size) {
                              self->on_write(static_cast<bool>(ec), size);
                            });
}

void Connection::on_write(bool failed, std::size_t size) {
  if (phase_ == Phase::kClosed) return;
  if (failed) return close();
  written_ += size;
  record_.bytes_sent += size;
  last_progress_ = Clock::now();
  if (written_ < out_.size()) return write_some();
  observe_delivery(out_since_);
  out_.clear();
  writing_ = false;
  if (!pending_.empty()) return flush();
  if (out_.capacity() > core_.options.max_stream_bytes) out_.shrink_to_fit();
  if (finished_) answered();
}

/// All that was written is with the kernel; `since`: Exchange::send's result_at of the oldest
/// event.
void Connection::observe_delivery(TimePoint since) {
  if (since == TimePoint{}) return;
  const std::chrono::duration<double> took = last_progress_ - since;
  core_.shared.counts.delivery_s.observe(took.count());
}

void Connection::answered() {
  finished_ = false;
  end_record();
  if (close_after_) return linger();
  phase_ = Phase::kHead;
  set_deadline(Clock::now() + core_.options.idle_timeout);
  parse();
  read();
}

void Connection::count_tokens(std::uint32_t prompt, std::uint32_t completion) {
  record_.prompt_tokens += prompt;
  record_.completion_tokens += completion;
  if (completion > 0 && record_.first_token == TimePoint{}) record_.first_token = Clock::now();
  if (account_ == nullptr) return;
  account_->tokens().take(static_cast<double>(prompt) + completion, Clock::now());
}

/// The request is over, answered or not.
void Connection::end_record() {
  if (record_.started == TimePoint{}) return;
  ++core_.shared.counts.requests[{record_.route, record_.status}];
  core_.shared.counts.bytes_sent += record_.bytes_sent;
  if (core_.shared.access_log != nullptr) core_.shared.access_log->add(record_, Clock::now());
  record_ = {};
  ticket_.reset();
  account_ = nullptr;
}

/// Closing with unread input would reset the connection, and the answer might never arrive.
void Connection::linger() {
  if (peer_ended_) return close();
  socket_->async_shut_down_send([self = shared_from_this()](const error_code&, std::size_t) {});
  phase_ = Phase::kLinger;
  input_.clear();
  const Duration patience = core_.options.linger_timeout;
  set_deadline(Clock::now() + (core_.shared.stopping ? std::min(patience, kStopLinger) : patience));
  read();
}

}  // namespace brigade::router
