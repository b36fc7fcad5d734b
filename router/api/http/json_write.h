// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace brigade::router {

/// Appends `text` as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD, one for
/// each maximal invalid part, so that the result is always valid JSON.
void append_json_string(std::string& out, std::string_view text);

/// Whether `text` is whole UTF-8 characters.
[[nodiscard]] bool is_whole_utf8(std::string_view text);

/// The shortest text that reads back as the same number: two prints of one value are equal. Not
/// finite: -9999 (JSON has no infinity, and a log-probability of zero must stay a number).
void append_json_number(std::string& out, float value);
void append_json_number(std::string& out, double value);

template <std::integral T>
void append_json_number(std::string& out, T value) {
  out += std::to_string(value);
}

/// Appends a JSON array of what `append(out, item)` writes for each item.
template <typename Items, typename Append>
void append_json_list(std::string& out, const Items& items, Append append) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    append(out, item);
  }
  out += ']';
}

/// Appends one JSON object to `out`, with the commas: braces by construction and end().
class ObjectWriter final {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  void end() { out_ += '}'; }

  void text(std::string_view name, std::string_view value) {
    key(name);
    append_json_string(out_, value);
  }
  template <typename T>
  void number(std::string_view name, T value) {
    key(name);
    append_json_number(out_, value);
  }
  void key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    append_json_string(out_, name);
    out_ += ':';
  }

 private:
  std::string& out_;
  bool first_ = true;
};

}  // namespace brigade::router
