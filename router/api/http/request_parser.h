// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/api/http/error.h"

namespace brigade::router {

/// A request's line and fields as sent; names in lower case.
struct RequestHead {
  std::string method;
  std::string target;
  bool http_1_1 = true;
  bool keep_alive = true;
  bool chunked = false;
  std::optional<std::uint64_t> content_length;
  std::vector<std::pair<std::string, std::string>> fields;

  /// The value of a field that is there once; null when it is missing or there twice.
  [[nodiscard]] const std::string* find(std::string_view name) const;
  [[nodiscard]] std::size_t count(std::string_view name) const;
};

/// Parses one HTTP/1 request from bytes as they come (Boost.Beast inside). Bounded: a head of
/// `max_header_bytes`, a body of `max_body_bytes` however it is framed, and at most a head's worth
/// of unused bytes in between.
class RequestParser final {
 public:
  enum class Event : std::uint8_t { kNeedMore, kHead, kDone, kError };
  struct Step {
    Event event = Event::kNeedMore;
    std::size_t used = 0;  ///< bytes taken; the caller gives the rest again, with more behind them
  };

  RequestParser(std::size_t max_header_bytes, std::size_t max_body_bytes);
  ~RequestParser();

  /// Goes on until something has happened: kHead comes once, before any of the body is taken. After
  /// kDone and kError the parser is used up.
  Step put(std::string_view bytes);

  [[nodiscard]] const RequestHead& head() const;
  [[nodiscard]] std::string take_body();
  /// After kError: what to answer, before closing.
  [[nodiscard]] ApiError error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::router
