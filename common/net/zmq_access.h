// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zmq.h>

#include <string>

#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/time.h"
#include "common/net/context.h"
#include "common/net/frame.h"
#include "common/net/socket.h"

/// For common/net's own .cpp files: shows libzmq.
namespace brigade::net {

struct FrameAccess {
  static zmq_msg_t* message(Frame& frame) {
    return reinterpret_cast<zmq_msg_t*>(frame.storage_.data());
  }
  static zmq_msg_t* message(const Frame& frame) { return message(const_cast<Frame&>(frame)); }
};

struct ContextAccess {
  static void* handle(Context& context) { return context.handle_; }
};

struct SocketAccess {
  static void* handle(const Socket& socket) { return socket.handle_; }
};

[[nodiscard]] inline std::string zmq_error() {
  return zmq_strerror(zmq_errno());
}

/// Milliseconds until the deadline, rounded up, for zmq_poll: 0 when it has passed, at most an
/// hour.
[[nodiscard]] inline long poll_timeout_ms(TimePoint deadline) {
  constexpr long kHour = 3'600'000;
  const TimePoint now = Clock::now();
  if (deadline <= now) return 0;
  if (deadline - now >= std::chrono::milliseconds(kHour)) return kHour;
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count());
}

}  // namespace brigade::net
