// SPDX-License-Identifier: Apache-2.0
#include "common/net/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "common/base/check.h"

namespace brigade::net {

EventFd::EventFd() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  INVARIANT(fd_ >= 0) << "no eventfd: are file descriptors exhausted?";
}

EventFd::~EventFd() {
  close(fd_);
}

void EventFd::signal() {
  // Fails only when the counter is full, and then it is readable already.
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

void EventFd::clear() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(fd_, &count, sizeof count);
}

}  // namespace brigade::net
