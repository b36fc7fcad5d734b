// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/json_write.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace brigade::router {
namespace {

struct Utf8Part {
  std::size_t length = 1;
  bool valid = false;
};

/// The character at the front of `text`, or the maximal invalid part there (Unicode 15, table 3-7).
Utf8Part utf8_front(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range keeps out overlong forms, surrogates and what is above U+10FFFF.
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

void append_escaped(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[(static_cast<std::uint8_t>(c) >> 4) & 15];
      out += kHex[static_cast<std::uint8_t>(c) & 15];
  }
}

template <typename T>
void append_floating(std::string& out, T value) {
  if (!std::isfinite(value)) {
    out += "-9999.0";
    return;
  }
  char text[40];
  const auto [end, ec] = std::to_chars(text, text + sizeof(text), value);
  out.append(text, ec == std::errc() ? static_cast<std::size_t>(end - text) : 0);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0;  // start of the run not yet copied
  std::size_t i = 0;
  const auto flush = [&] { out.append(text.substr(plain, i - plain)); };
  while (i < text.size()) {
    const auto c = static_cast<std::uint8_t>(text[i]);
    if (c >= 0x20 && c < 0x7F && c != '"' && c != '\\') {
      ++i;
    } else if (c < 0x80) {
      flush();
      append_escaped(out, text[i]);
      plain = ++i;
    } else if (const Utf8Part part = utf8_front(text.substr(i)); part.valid) {
      i += part.length;
    } else {
      flush();
      out += "\xEF\xBF\xBD";
      i += part.length;
      plain = i;
    }
  }
  flush();
  out += '"';
}

bool is_whole_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Part part = utf8_front(text);
    if (!part.valid) return false;
    text.remove_prefix(part.length);
  }
  return true;
}

void append_json_number(std::string& out, float value) {
  append_floating(out, value);
}
void append_json_number(std::string& out, double value) {
  append_floating(out, value);
}

}  // namespace brigade::router
