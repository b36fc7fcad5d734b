// SPDX-License-Identifier: Apache-2.0
#include "common/base/strings.h"

#include <cstdio>

namespace brigade {

std::string quoted(std::string_view text, std::size_t max_bytes) {
  std::string out = "\"";
  for (char c : text.substr(0, max_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + (text.size() > max_bytes ? "\"..." : "\"");
}

}  // namespace brigade
