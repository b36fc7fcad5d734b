// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace brigade::net {

/// Wakes a thread that sleeps in a Poller (a third cheaper than an inproc socket, and safe from any
/// thread).
class EventFd final {
 public:
  EventFd();
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  void signal();
  /// Readable again only after the next signal().
  void clear();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace brigade::net
