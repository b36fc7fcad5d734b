// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>

#include "shard_worker/collectives/collective.h"

namespace brigade::worker {

/// How another thread ends what the engine thread waits for. The engine thread arms the switch for
/// an epoch and says which group it may sit in; any thread may abort that epoch, which ends the
/// group's waits and wakes the engine thread. An abort that comes before its epoch is armed counts
/// too: jobs wait in a queue, aborts do not.
class AbortSwitch final {
 public:
  /// `wake` is called by abort(), from its thread: it must wake the engine thread from its poll.
  explicit AbortSwitch(std::function<void()> wake) : wake_(std::move(wake)) {}

  // The engine thread.
  void arm(std::uint64_t epoch) {
    std::lock_guard lock(mutex_);
    epoch_ = epoch;
    stop_ = std::stop_source();
    if (all_ || (last_aborted_ == epoch && epoch != 0)) stop_.request_stop();
  }
  /// `group` must live until set_group(nullptr) or arm().
  void set_group(Collective* group) {
    std::lock_guard lock(mutex_);
    group_ = group;
    if (group != nullptr && stop_.stop_requested()) group->abort();
  }
  [[nodiscard]] std::stop_token token() const {
    std::lock_guard lock(mutex_);
    return stop_.get_token();
  }

  // Any thread.
  void abort(std::uint64_t epoch) {
    {
      std::lock_guard lock(mutex_);
      last_aborted_ = epoch;
      if (epoch == epoch_) stop_now();
    }
    wake_();
  }
  /// Aborts the epoch that is armed and each that will be: the process ends.
  void abort_all() {
    {
      std::lock_guard lock(mutex_);
      all_ = true;
      stop_now();
    }
    wake_();
  }

 private:
  void stop_now() {
    stop_.request_stop();
    if (group_ != nullptr) group_->abort();
  }

  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::uint64_t epoch_ = 0;
  std::uint64_t last_aborted_ = 0;
  bool all_ = false;
  std::stop_source stop_;
  Collective* group_ = nullptr;
};

}  // namespace brigade::worker
