// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/base/status.h"

namespace brigade::router {

/// A decision trace on disk. Lines are handed over by the thread that decides and written by one of
/// its own. A trace with a hole cannot be replayed beyond it, so when the file is full, the disk
/// falls behind by more than `max_queued_bytes`, or a write fails, it ends there with a line that
/// says so; the router goes on.
class TraceFile final {
 public:
  struct Limits {
    std::uint64_t max_bytes = std::uint64_t{1} << 30;
    std::uint64_t max_queued_bytes = std::uint64_t{64} << 20;
  };
  /// Replaces the file; only its owner may read it, because prompts are in it.
  static Result<std::unique_ptr<TraceFile>> open(const std::string& path, Limits limits);
  /// Writes what waits.
  ~TraceFile();

  void write(std::string line);

 private:
  TraceFile(int fd, std::string path, Limits limits);
  void run();
  void write_all(const std::string& text);

  const int fd_;
  const std::string path_;
  const Limits limits_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t num_bytes_ = 0;
  bool ended_ = false;  ///< takes no more lines
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace brigade::router
