// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace brigade::tools {

/// How a process ended: an exit code, or the signal that killed it.
struct ProcessEnd {
  int code = 0;
  int signal = 0;

  [[nodiscard]] bool clean() const { return code == 0 && signal == 0; }
  [[nodiscard]] std::string describe()
      const;  ///< `exited with code 1`, `was killed by signal 9 (Killed)`
};

/// One child process, watched through a pidfd. It has a process group of its own, so that Ctrl-C in
/// the terminal reaches the supervisor alone and the order of the stop is the supervisor's; its
/// standard output goes to our standard error. The destructor kills and reaps: no owner, no
/// process.
class Process final {
 public:
  /// Starts argv[0]; kInternal with the cause when that fails.
  static Result<Process> start(const std::vector<std::string>& argv);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Readable once the process has ended; -1 when it has been reaped.
  [[nodiscard]] int pidfd() const { return pidfd_; }

  /// How it ended, if it has: reaps it.
  [[nodiscard]] std::optional<ProcessEnd> try_wait();
  /// Nothing when it has ended. Goes through the pidfd: never hits another process that got the
  /// same pid.
  void signal(int number) const;

 private:
  Process(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}
  void end_now();

  pid_t pid_ = -1;
  int pidfd_ = -1;
};

/// The path of a program that lies beside this one (`brigade-router` beside `brigade`).
[[nodiscard]] Result<std::string> sibling_program(const std::string& name);

}  // namespace brigade::tools
