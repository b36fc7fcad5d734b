// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "common/net/event_fd.h"

namespace brigade::net {

/// Items from any thread to the one that owns a socket: a vector swapped under a lock, and an
/// eventfd for its Poller. Bounded; a full outbox refuses, and the caller owns that case.
template <typename T>
class Outbox final {
 public:
  explicit Outbox(std::size_t capacity) : capacity_(capacity) {}

  [[nodiscard]] bool push(T item) {
    std::lock_guard lock(mutex_);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    if (items_.size() == 1) event_.signal();
    return true;
  }

  /// For items whose number is bounded elsewhere, such as the last word on an open request. Dropped
  /// after close().
  void push_always(T item) {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    items_.push_back(std::move(item));
    if (items_.size() == 1) event_.signal();
  }

  /// All of them or none, so that a batch costs one lock and one wake.
  [[nodiscard]] bool push_all(std::vector<T>& items) {
    if (items.empty()) return true;
    std::lock_guard lock(mutex_);
    if (closed_ || items_.size() + items.size() > capacity_) return false;
    const bool was_empty = items_.empty();
    for (T& item : items)
      items_.push_back(std::move(item));
    items.clear();
    if (was_empty) event_.signal();
    return true;
  }

  /// Replaces `out` by everything that waits.
  void take(std::vector<T>& out) {
    out.clear();
    // Before the swap: a push in between signals again, the other order would lose its wake.
    event_.clear();
    std::lock_guard lock(mutex_);
    out.swap(items_);
  }

  /// Refuses pushes from now on; what waits can still be taken.
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    event_.signal();
  }
  [[nodiscard]] bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

  [[nodiscard]] int fd() const { return event_.fd(); }

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::vector<T> items_;
  bool closed_ = false;
  EventFd event_;
};

}  // namespace brigade::net
