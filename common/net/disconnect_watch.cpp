// SPDX-License-Identifier: Apache-2.0
#include "common/net/disconnect_watch.h"

#include <atomic>

#include "common/base/strings.h"
#include "common/net/zmq_access.h"

namespace brigade::net {

Result<std::unique_ptr<DisconnectWatch>> DisconnectWatch::start(Context& context, Socket& socket) {
  static std::atomic<std::uint64_t> next{0};
  const std::string endpoint = str_cat("inproc://disconnects-", next++);
  if (zmq_socket_monitor(SocketAccess::handle(socket), endpoint.c_str(), ZMQ_EVENT_DISCONNECTED) !=
      0) {
    return internal_error(str_cat("cannot watch a socket: ", zmq_error()));
  }
  void* events = zmq_socket(ContextAccess::handle(context), ZMQ_PAIR);
  if (events == nullptr) return internal_error(str_cat("no socket: ", zmq_error()));
  std::unique_ptr<DisconnectWatch> watch(new DisconnectWatch(events));
  const int no_linger = 0;
  zmq_setsockopt(events, ZMQ_LINGER, &no_linger, sizeof no_linger);
  if (zmq_connect(events, endpoint.c_str()) != 0) {
    return internal_error(str_cat("cannot watch a socket: ", zmq_error()));
  }
  return watch;
}

DisconnectWatch::~DisconnectWatch() {
  zmq_close(events_);
}

bool DisconnectWatch::take() {
  bool any = false;
  Frame frame;
  // What the two frames of an event say is known: there is one kind of event.
  while (zmq_msg_recv(FrameAccess::message(frame), events_, ZMQ_DONTWAIT) >= 0)
    any = true;
  return any;
}

}  // namespace brigade::net
