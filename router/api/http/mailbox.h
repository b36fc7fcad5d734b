// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <vector>

namespace brigade::router {

/// Work for the I/O thread from other threads, in order. One wake for all that arrives while the
/// thread has not yet looked: a step's outputs for many streams cost one wake together. Bounded by
/// what live requests can produce; once closed, everything is dropped.
class Mailbox final {
 public:
  /// `wake` must make the I/O thread call run() soon. It is called under the lock, never after
  /// close().
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void post(std::function<void()> task) {
    std::lock_guard lock(mutex_);
    if (!wake_) return;
    tasks_.push_back(std::move(task));
    if (tasks_.size() == 1) wake_();
  }

  /// On the I/O thread: runs what is there.
  void run() {
    std::vector<std::function<void()>> tasks;
    {
      std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks)
      task();
  }

  void close() {
    std::vector<std::function<void()>> dropped;  // destroyed outside the lock
    std::lock_guard lock(mutex_);
    wake_ = nullptr;
    dropped.swap(tasks_);
  }

 private:
  std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<std::function<void()>> tasks_;
};

}  // namespace brigade::router
