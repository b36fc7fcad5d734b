// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace brigade {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void init_log(std::string_view process_name, LogLevel level) {
  auto logger = spdlog::get("brigade");
  if (!logger) {
    logger = spdlog::stderr_color_mt("brigade");
    spdlog::set_default_logger(logger);
  }
  std::string safe_name;
  for (char c : process_name)
    safe_name += c == '%' ? std::string("%%") : std::string(1, c);
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ " + safe_name + ": %v");
  logger->set_level(to_spdlog(level));
  logger->flush_on(spdlog::level::info);
  if (const char* chosen = std::getenv("BRIGADE_LOG")) {
    logger->set_level(spdlog::level::from_str(chosen));
  }
}

void log_line(LogLevel level, std::string_view text) {
  spdlog::log(to_spdlog(level), "{}", text);
}

}  // namespace brigade
