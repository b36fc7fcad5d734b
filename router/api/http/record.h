// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/time.h"

namespace brigade::router {

/// What is known of a request beside its answer: for its limits, the access log and the metrics.
/// The connection keeps it, and those that answer fill it in as they go.
struct RequestRecord {
  std::string request_id;
  std::string traceparent;  ///< as sent, when it is well formed
  std::string remote;       ///< address
  std::string method;
  std::string_view route;  ///< of the table of routes; "other" for what is not there
  std::string key_id;      ///< empty without keys
  std::string tenant = "default";

  std::string model;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::string finish_reason;  ///< of the last choice to end
  std::string prompt;         ///< the body, when the access log is to have it

  int status = 0;  ///< 0: no answer was begun
  std::uint64_t bytes_sent = 0;
  TimePoint started{};      ///< the head was whole
  TimePoint first_token{};  ///< the epoch when there was none
  bool cut = false;         ///< the client went, or was cut, before the end of the answer
};

}  // namespace brigade::router
