// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/base/status.h"
#include "common/net/context.h"
#include "common/net/socket.h"

namespace brigade::net {

/// Tells that a connection of a socket has ended, which a ROUTER socket itself shows only to who
/// sends on it. Not which one, and perhaps a moment before a send to that peer fails: who wakes
/// sends each peer something now and once more soon after.
///
/// Belongs to the socket's thread, and must be gone before its context; Poller::add wakes by it.
class DisconnectWatch final {
 public:
  static Result<std::unique_ptr<DisconnectWatch>> start(Context& context, Socket& socket);
  ~DisconnectWatch();
  DisconnectWatch(const DisconnectWatch&) = delete;
  DisconnectWatch& operator=(const DisconnectWatch&) = delete;

  /// Whether a connection has ended since the last call.
  [[nodiscard]] bool take();

 private:
  friend class Poller;
  explicit DisconnectWatch(void* events) : events_(events) {}

  void* events_;  ///< PAIR that libzmq writes events to
};

}  // namespace brigade::net
