// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace brigade::router {

/// Events from any thread to an actor: the actor gets one message for a batch of them, because a
/// wake costs more than all else, and its mailbox, which has no bound, holds one message at most.
template <typename Event>
class Inbox final {
 public:
  /// `wake` is called, under no lock, when the first event of a batch arrives.
  Inbox(std::size_t capacity, std::function<void()> wake)
      : capacity_(capacity), wake_(std::move(wake)) {}

  /// False when full.
  [[nodiscard]] bool push(Event event) { return push_within(std::move(event), capacity_); }

  /// For events whose number is bounded elsewhere: one an open request, or a sender that stops at
  /// full().
  void push_always(Event event) { (void)push_within(std::move(event), ~std::size_t{0}); }

  [[nodiscard]] bool full() const {
    std::lock_guard lock(mutex_);
    return events_.size() >= capacity_;
  }

  /// Replaces `out` by all events that wait.
  void take(std::vector<Event>& out) {
    out.clear();
    std::lock_guard lock(mutex_);
    out.swap(events_);
  }

 private:
  bool push_within(Event event, std::size_t capacity) {
    bool first = false;
    {
      std::lock_guard lock(mutex_);
      if (events_.size() >= capacity) return false;
      first = events_.empty();
      events_.push_back(std::move(event));
    }
    if (first) wake_();
    return true;
  }

  const std::size_t capacity_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace brigade::router
