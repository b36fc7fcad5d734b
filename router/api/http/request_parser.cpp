// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

/// Nobody sends chunk extensions; long ones are only a way to make a server read much for little.
constexpr std::size_t kMaxChunkExtension = 128;

}  // namespace

const std::string* RequestHead::find(std::string_view name) const {
  const std::string* found = nullptr;
  for (const auto& [key, value] : fields) {
    if (key != name) continue;
    if (found != nullptr) return nullptr;
    found = &value;
  }
  return found;
}

std::size_t RequestHead::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(
      fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; }));
}

struct RequestParser::Impl {
  http::request_parser<http::string_body> parser;
  RequestHead head;
  std::size_t max_header_bytes = 0;
  std::size_t max_body_bytes = 0;
  bool head_seen = false;
  beast::error_code error;

  void read_head() {
    const auto& message = parser.get();
    head.method = std::string(message.method_string());
    head.target = std::string(message.target());
    head.http_1_1 = message.version() >= 11;
    head.keep_alive = parser.keep_alive();
    head.chunked = parser.chunked();
    if (const auto length = parser.content_length()) head.content_length = *length;
    for (const auto& field : message) {
      std::string name(field.name_string());
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
      head.fields.emplace_back(std::move(name), std::string(field.value()));
    }
  }
};

RequestParser::RequestParser(std::size_t max_header_bytes, std::size_t max_body_bytes)
    : impl_(std::make_unique<Impl>()) {
  impl_->max_header_bytes = max_header_bytes;
  impl_->max_body_bytes = max_body_bytes;
  impl_->parser.header_limit(static_cast<std::uint32_t>(max_header_bytes));
  impl_->parser.body_limit(max_body_bytes);
  // Beast keeps a pointer to the callback: it has no state, and outlives every parser.
  static auto check_extension = [](std::uint64_t, beast::string_view extensions,
                                   beast::error_code& ec) {
    const bool odd = !extensions.empty() && extensions.front() != ';';
    if (odd || extensions.size() > kMaxChunkExtension) ec = http::error::bad_chunk_extension;
  };
  impl_->parser.on_chunk_header(check_extension);
}

RequestParser::~RequestParser() = default;

RequestParser::Step RequestParser::put(std::string_view bytes) {
  Impl& state = *impl_;
  Step step;
  while (true) {
    if (state.parser.is_header_done() && !state.head_seen) {
      state.head_seen = true;
      state.read_head();
      step.event = Event::kHead;
      return step;
    }
    if (state.parser.is_done()) {
      step.event = Event::kDone;
      return step;
    }
    const std::string_view rest = bytes.substr(step.used);
    if (rest.empty()) return step;
    beast::error_code ec;
    step.used += state.parser.put({rest.data(), rest.size()}, ec);
    if (ec == http::error::need_more) {
      // Only a head, a chunk's head or trailers wait for more with bytes in hand.
      if (bytes.size() - step.used <= state.max_header_bytes) return step;
      ec = http::error::header_limit;
    }
    if (ec) {
      state.error = ec;
      step.event = Event::kError;
      return step;
    }
  }
}

const RequestHead& RequestParser::head() const {
  return impl_->head;
}

std::string RequestParser::take_body() {
  return std::move(impl_->parser.get().body());
}

ApiError RequestParser::error() const {
  const beast::error_code& ec = impl_->error;
  if (ec == http::error::body_limit) {
    return {.status = 413,
            .message = str_cat("The body is larger than ", impl_->max_body_bytes, " bytes.")};
  }
  if (ec == http::error::header_limit) {
    return {.status = 431,
            .message = str_cat("The header is larger than ", impl_->max_header_bytes, " bytes.")};
  }
  return {.status = 400, .message = str_cat("This is no valid HTTP request: ", ec.message(), ".")};
}

}  // namespace brigade::router
