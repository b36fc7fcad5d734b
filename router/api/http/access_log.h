// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "common/base/bounded_queue.h"
#include "common/base/files.h"
#include "common/base/status.h"
#include "router/api/http/record.h"

namespace brigade::router {

/// One line of JSON for each request that has ended:
/// {"time","id","trace_id","remote","method","path","status","key","tenant","model",
///  "prompt_tokens","completion_tokens","cached_tokens","finish_reason","first_token_ms",
///  "total_ms","bytes"}, and "prompt" (the body) where that is asked for. What is not known is left
/// out. A thread of its own writes; when the disk does not keep up, lines are dropped and counted,
/// and requests go on.
class AccessLog final {
 public:
  /// `path`: a file to append to, or `-` for standard error. kNotFound when it cannot be opened.
  static Result<std::unique_ptr<AccessLog>> open(const std::string& path);
  ~AccessLog();

  /// Does not block.
  void add(const RequestRecord& record, TimePoint ended);
  /// Opens the file by its name again: after it has been moved away.
  void reopen() { reopen_ = true; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  AccessLog(std::string path, FileDescriptor file);
  void write_lines();
  void open_again();

  std::string path_;
  FileDescriptor file_;
  BoundedQueue<std::string> lines_;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::atomic<bool> reopen_ = false;
  std::thread thread_;
};

/// The line of a request that has ended just now, without its end.
[[nodiscard]] std::string access_line(const RequestRecord& record, TimePoint ended,
                                      std::int64_t unix_ms);

}  // namespace brigade::router
