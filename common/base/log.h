// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace brigade {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

/// Sets what is written (to stderr) and the name put in front of each line, such as `router` or
/// `worker 3`. The level is BRIGADE_LOG (debug, info, warning, error) when that is set, else
/// `level`.
void init_log(std::string_view process_name, LogLevel level = LogLevel::kInfo);

/// One line of log. Callers compose the text (std::format-like helpers are not in this toolchain);
/// a line says what happened, with the values.
void log_line(LogLevel level, std::string_view text);

inline void log_debug(std::string_view text) {
  log_line(LogLevel::kDebug, text);
}
inline void log_info(std::string_view text) {
  log_line(LogLevel::kInfo, text);
}
inline void log_warning(std::string_view text) {
  log_line(LogLevel::kWarning, text);
}
inline void log_error(std::string_view text) {
  log_line(LogLevel::kError, text);
}

}  // namespace brigade
