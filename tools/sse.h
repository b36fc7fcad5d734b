// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace brigade::tools {

/// One server-sent event: the `event:` field (empty: message) and the `data:` lines joined by
/// newlines.
struct SseEvent {
  std::string event;
  std::string data;
};

/// Cuts a byte stream, whose pieces may end anywhere, into server-sent events (WHATWG HTML,
/// section 9.2: LF, CR and CRLF end lines, comments and unknown fields are passed over, an event
/// without data is none).
class SseReader final {
 public:
  explicit SseReader(std::size_t max_event_bytes = 16U << 20) : max_event_bytes_(max_event_bytes) {}

  /// Calls `on_event` for each event that is complete. kDataLoss when one grows past the bound.
  Status push(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event);

 private:
  void end_line(const std::function<void(const SseEvent&)>& on_event);

  const std::size_t max_event_bytes_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;
};

}  // namespace brigade::tools
