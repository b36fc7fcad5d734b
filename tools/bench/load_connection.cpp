// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/load_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "common/base/strings.h"
#include "tools/bench/units.h"
#include "tools/tls_client.h"

namespace brigade::tools {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::size_t kMaxErrorBody = 16 << 10;

/// Too much at the moment: not the request's fault.
bool is_refusal(const http::response<http::string_body>& head) {
  const unsigned status = head.result_int();
  return status == 429 || (status == 503 && head.count(http::field::retry_after) > 0);
}

}  // namespace

LoadConnection::LoadConnection(asio::io_context& io, const LoadTarget& target)
    : target_(target), socket_(io), timer_(io) {}

double LoadConnection::seconds(TimePoint at) const {
  return std::chrono::duration<double>(at - target_.start).count();
}

void LoadConnection::start(LoadRequest request, Listener listener) {
  ++generation_;
  running_ = true;
  request_ = std::move(request);
  listener_ = std::move(listener);
  outcome_ = {};
  outcome_.due_s = request_.due_s;
  outcome_.sent_s = seconds(Clock::now());
  parser_.emplace();
  parser_->eager(true);
  parser_->body_limit(boost::none);
  answer_.emplace();
  input_.clear();
  error_body_.clear();
  timer_.expires_after(target_.timeout);
  timer_.async_wait([self = shared_from_this(), generation = generation_](const Error& error) {
    if (!error && generation == self->generation_) self->on_timer();
  });
  if (connected_) {
    write();
  } else {
    connect();
  }
}

void LoadConnection::connect() {
  fresh_ = true;
  tls_.reset();
  socket_ = asio::ip::tcp::socket(socket_.get_executor());
  asio::async_connect(
      socket_, target_.endpoints,
      [self = shared_from_this(), generation = generation_](const Error& error, const auto&) {
        if (generation != self->generation_ || !self->running_) return;
        if (error) return self->fail("connect: " + error.message());
        Error ignored;
        self->socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
        if (self->target_.tls == nullptr) {
          self->connected_ = true;
          self->write();
        } else {
          self->handshake();
        }
      });
}

void LoadConnection::handshake() {
  tls_.emplace(socket_, *target_.tls);
  expect_host(*tls_, target_.address);
  tls_->async_handshake(asio::ssl::stream_base::client,
                        [self = shared_from_this(), generation = generation_](const Error& error) {
                          if (generation != self->generation_ || !self->running_) return;
                          if (error) return self->fail("TLS handshake: " + error.message());
                          self->connected_ = true;
                          self->write();
                        });
}

void LoadConnection::write() {
  const auto done = [self = shared_from_this(), generation = generation_](const Error& error,
                                                                          std::size_t) {
    if (generation != self->generation_ || !self->running_) return;
    // The server may have closed a kept connection a moment ago: that is nobody's failure.
    if (error && !self->fresh_) return self->connect();
    if (error) return self->fail("send: " + error.message());
    if (self->request_.abandon_after == 0U) return self->end(Outcome::End::kAbandoned);
    self->read();
  };
  if (tls_) {
    asio::async_write(*tls_, asio::buffer(request_.bytes), done);
  } else {
    asio::async_write(socket_, asio::buffer(request_.bytes), done);
  }
}

void LoadConnection::read() {
  const auto done = [self = shared_from_this(), generation = generation_](const Error& error,
                                                                          std::size_t size) {
    if (generation == self->generation_ && self->running_) self->on_read(error, size);
  };
  if (tls_) {
    tls_->async_read_some(asio::buffer(chunk_), done);
  } else {
    socket_.async_read_some(asio::buffer(chunk_), done);
  }
}

void LoadConnection::on_read(const Error& error, std::size_t size) {
  const TimePoint now = Clock::now();
  if (error) {
    if (!fresh_ && !parser_->got_some()) {
      connected_ = false;
      return connect();
    }
    Error ended;
    if (error == asio::error::eof && parser_->got_some()) parser_->put_eof(ended);
    if (parser_->is_done()) return on_whole_answer();
    return fail(parser_->got_some() ? "the answer broke off" : "closed without an answer");
  }
  fresh_ = false;
  input_.append(chunk_.data(), size);
  if (!take_input(now)) return;
  if (parser_->is_done()) return on_whole_answer();
  read();
}

/// False when the request has ended in here.
bool LoadConnection::take_input(TimePoint now) {
  const std::uint64_t generation = generation_;
  while (!input_.empty() && !parser_->is_done()) {
    Error error;
    const std::size_t used = parser_->put(asio::buffer(input_), error);
    input_.erase(0, used);
    if (parser_->is_header_done()) take_body(now);
    if (generation != generation_ || !running_) return false;
    if (error == http::error::need_more || (!error && used == 0)) return true;
    if (error) return fail("the answer is no HTTP: " + error.message()), false;
  }
  return true;
}

void LoadConnection::take_body(TimePoint now) {
  std::string& body = parser_->get().body();
  if (parser_->get().result_int() == 200) {
    answer_->push(body, [&](std::uint32_t num_tokens) { on_tokens(now, num_tokens); });
  } else if (error_body_.size() < kMaxErrorBody) {
    error_body_ += body;
  }
  body.clear();
}

void LoadConnection::on_tokens(TimePoint now, std::uint32_t num_tokens) {
  if (!running_) return;  // abandoned by an event of the same read
  const double at_s = seconds(now);
  std::optional<double> gap_s;
  if (outcome_.first_token_s) {
    gap_s = at_s - outcome_.last_token_s;
  } else {
    outcome_.first_token_s = at_s;
  }
  outcome_.last_token_s = at_s;
  listener_.on_tokens(at_s, gap_s, num_tokens);
  if (request_.abandon_after && answer_->output_tokens() >= *request_.abandon_after) {
    end(Outcome::End::kAbandoned);
  }
}

void LoadConnection::on_whole_answer() {
  const auto& head = parser_->get();
  if (!parser_->keep_alive()) connected_ = false;
  if (head.result_int() != 200) {
    outcome_.error = str_cat("HTTP ", head.result_int(), " ", error_kind(error_body_));
    if (!is_refusal(head)) return end(Outcome::End::kFailed);
    const auto told = head.find(http::field::retry_after);
    if (told != head.end()) {
      const auto wait_s = parse_seconds({told->value().data(), told->value().size()});
      if (wait_s.ok()) outcome_.retry_after_s = *wait_s;
    }
    return end(Outcome::End::kRefused);
  }
  if (!answer_->error().empty()) {
    outcome_.error = "in the stream: " + answer_->error();
    return end(Outcome::End::kFailed);
  }
  if (!answer_->done() || !answer_->finished()) {
    outcome_.error =
        answer_->done() ? "a stream without a finish_reason" : "a stream without [DONE]";
    return end(Outcome::End::kFailed);
  }
  end(Outcome::End::kComplete);
}

void LoadConnection::on_timer() {
  if (running_)
    fail(str_cat("no end within ", std::chrono::duration<double>(target_.timeout).count(), " s"));
}

void LoadConnection::cut() {
  if (running_) end(Outcome::End::kCut);
}

void LoadConnection::fail(std::string kind) {
  connected_ = false;
  outcome_.error = std::move(kind);
  end(Outcome::End::kFailed);
}

void LoadConnection::end(Outcome::End how) {
  running_ = false;
  timer_.cancel();
  outcome_.end = how;
  outcome_.end_s = seconds(Clock::now());
  outcome_.prompt_tokens = answer_->prompt_tokens();
  outcome_.cached_tokens = answer_->cached_tokens();
  outcome_.output_tokens = answer_->output_tokens();
  if (how == Outcome::End::kAbandoned || how == Outcome::End::kCut) connected_ = false;
  if (!connected_) {
    Error ignored;
    socket_.close(ignored);
  }
  // Nothing of the listener may live on here: it holds what owns this connection.
  const Listener listener = std::exchange(listener_, {});
  listener.on_end(outcome_, connected_);
}

}  // namespace brigade::tools
