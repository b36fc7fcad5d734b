// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/time.h"

namespace brigade::worker {

/// Starts brigade-worker with these arguments; returns its process id.
[[nodiscard]] pid_t spawn_worker(const std::vector<std::string>& arguments);

/// The exit status (128 + signal when killed), or nothing when it still runs at the deadline.
[[nodiscard]] std::optional<int> wait_exit(pid_t pid, TimePoint deadline);

/// A brigade-worker that is killed, at the latest, with this object.
class WorkerChild final {
 public:
  explicit WorkerChild(const std::vector<std::string>& arguments) : pid_(spawn_worker(arguments)) {}
  ~WorkerChild();
  WorkerChild(WorkerChild&& other) noexcept;
  WorkerChild& operator=(WorkerChild&&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// As wait_exit; the process is reaped once it returned a status.
  std::optional<int> wait(Duration at_most);

 private:
  pid_t pid_;
  bool reaped_ = false;
};

}  // namespace brigade::worker
