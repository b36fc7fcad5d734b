// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/net/socket.h"

namespace brigade::net {

class DisconnectWatch;

/// Sleeps until a socket or file descriptor is readable, or a deadline. Sockets must outlive their
/// poller or remove themselves by clear().
class Poller final {
 public:
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// Returns the index for readable().
  std::size_t add(const Socket& socket);
  std::size_t add(const DisconnectWatch& watch);
  std::size_t add_fd(int fd);
  void clear();

  /// True when something is readable, false at the deadline.
  [[nodiscard]] Result<bool> wait(TimePoint deadline);
  [[nodiscard]] bool readable(std::size_t index) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::net
