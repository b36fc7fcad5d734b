// SPDX-License-Identifier: Apache-2.0
#include "tools/sse.h"

#include "common/base/strings.h"

namespace brigade::tools {

Status SseReader::push(std::string_view bytes,
                       const std::function<void(const SseEvent&)>& on_event) {
  for (const char c : bytes) {
    const bool second_of_crlf = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (second_of_crlf) continue;
    if (c == '\n' || c == '\r') {
      end_line(on_event);
    } else {
      line_ += c;
    }
    if (line_.size() + event_.data.size() > max_event_bytes_) {
      return data_loss(str_cat("an event of the stream exceeds ", max_event_bytes_, " bytes"));
    }
  }
  return {};
}

void SseReader::end_line(const std::function<void(const SseEvent&)>& on_event) {
  if (line_.empty()) {
    if (has_data_) on_event(event_);
    event_ = {};
    has_data_ = false;
    return;
  }
  const std::string_view line = line_;
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    event_.event = value;
  }
  line_.clear();
}

}  // namespace brigade::tools
