// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "common/base/signals.h"
#include "common/base/time.h"

namespace brigade::worker {

/// Keeps SIGINT, SIGTERM and SIGHUP from ending the process by themselves, in this thread and those
/// it makes: call first in main.
void block_stop_signals();

/// A thread that watches for reasons to end: SIGINT, SIGTERM, SIGHUP, and the death of the process
/// that started this one (a pidfd: no orphan outlives its supervisor, and no thread of the
/// supervisor matters). It calls `on_stop` once, with the reason; if the guardian still lives
/// `grace` after that, or a second signal comes, it calls `last_words` and ends the process hard.
class Guardian final {
 public:
  struct Options {
    std::optional<pid_t> expected_parent;
    Duration grace = std::chrono::seconds(5);
    std::function<void(const std::string&)> on_stop;  ///< called on the guardian's thread
    std::function<void()> last_words;
  };
  explicit Guardian(Options options);
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

 private:
  void watch();
  /// Why to end, or nothing when the guardian was told to stop first or `deadline` passed.
  std::optional<std::string> next_reason(TimePoint deadline);

  Options options_;
  FileDescriptor signals_;
  FileDescriptor parent_;
  FileDescriptor quit_;        ///< an eventfd
  bool orphan_ = false;        ///< the parent was gone before we could watch it
  bool told_to_quit_ = false;  ///< of the thread alone
  std::thread thread_;
};

}  // namespace brigade::worker
