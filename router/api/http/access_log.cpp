// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/access_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "router/api/http/json_write.h"
#include "router/api/http/trace_context.h"

namespace brigade::router {
namespace {

/// That wait to be written.
constexpr std::size_t kMaxLines = 4096;
/// Of a prompt, in bytes: with it the lines that wait take 64 MiB at most.
constexpr std::size_t kMaxPrompt = 16 << 10;
constexpr Duration kIdleWait = std::chrono::hours(1);

Result<FileDescriptor> open_file(const std::string& path) {
  const int fd = path == "-"
                     ? dup(STDERR_FILENO)
                     : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (fd >= 0) return FileDescriptor(fd);
  return not_found(
      str_cat("cannot open the access log ", quoted(path, 200), ": ", std::strerror(errno)));
}

std::string time_text(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  const std::string millis = std::to_string(1000 + unix_ms % 1000);
  return std::string(text, size) + "." + millis.substr(1) + "Z";
}

double to_ms(Duration value) {
  return std::chrono::duration_cast<std::chrono::microseconds>(value).count() / 1000.0;
}

}  // namespace

std::string access_line(const RequestRecord& record, TimePoint ended, std::int64_t unix_ms) {
  std::string text;
  ObjectWriter line(text);
  const auto known = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) line.text(name, value);
  };
  known("time", time_text(unix_ms));
  known("id", record.request_id);
  known("trace_id", trace_id_of(record.traceparent));
  known("remote", record.remote);
  known("method", record.method);
  known("path", record.route);
  line.number("status", record.status);
  known("key", record.key_id);
  known("tenant", record.tenant);
  known("model", record.model);
  if (!record.model.empty()) {
    line.number("prompt_tokens", record.prompt_tokens);
    line.number("completion_tokens", record.completion_tokens);
    line.number("cached_tokens", record.cached_tokens);
  }
  known("finish_reason", record.cut ? std::string_view("client_gone") : record.finish_reason);
  if (record.first_token != TimePoint{}) {
    line.number("first_token_ms", to_ms(record.first_token - record.started));
  }
  line.number("total_ms", to_ms(ended - record.started));
  line.number("bytes", record.bytes_sent);
  known("prompt", std::string_view(record.prompt).substr(0, kMaxPrompt));
  line.end();
  return text;
}

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& path) {
  ASSIGN_OR_RETURN(FileDescriptor file, open_file(path));
  return std::unique_ptr<AccessLog>(new AccessLog(path, std::move(file)));
}

AccessLog::AccessLog(std::string path, FileDescriptor file)
    : path_(std::move(path)), file_(std::move(file)), lines_(kMaxLines) {
  thread_ = std::thread([this] { write_lines(); });
}

AccessLog::~AccessLog() {
  lines_.close();
  thread_.join();
}

void AccessLog::add(const RequestRecord& record, TimePoint ended) {
  const auto unix_time = std::chrono::system_clock::now().time_since_epoch();
  const auto unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(unix_time).count();
  if (!lines_.try_push(access_line(record, ended, unix_ms) + '\n')) ++dropped_;
}

void AccessLog::open_again() {
  auto file = open_file(path_);
  if (file.ok()) {
    file_ = std::move(file).value();
  } else {
    log_error(str_cat("the access log goes on in the old file: ", file.status().message()));
  }
}

void AccessLog::write_lines() {
  bool failing = false;
  while (true) {
    std::optional<std::string> line = lines_.pop_until(Clock::now() + kIdleWait);
    if (!line && lines_.closed()) return;
    if (!line) continue;
    if (reopen_.exchange(false)) open_again();
    const ssize_t written = write(file_.get(), line->data(), line->size());
    if (written == static_cast<ssize_t>(line->size())) {
      failing = false;
      continue;
    }
    ++dropped_;
    if (!std::exchange(failing, true)) {
      log_error(str_cat("cannot write the access log: ", std::strerror(errno)));
    }
  }
}

}  // namespace brigade::router
