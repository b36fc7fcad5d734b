// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace brigade {

/// Everything streamed one after another: `str_cat("layer ", 3, " of ", 30)`.
template <typename... Args>
[[nodiscard]] std::string str_cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

/// The text in double quotes with control characters and invalid bytes escaped, cut to `max_bytes`:
/// for messages that repeat what came from outside.
[[nodiscard]] std::string quoted(std::string_view text, std::size_t max_bytes = 80);

}  // namespace brigade
