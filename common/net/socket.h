// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/net/context.h"
#include "common/net/frame.h"
#include "common/net/keys.h"

namespace brigade::net {

struct SocketOptions {
  std::size_t max_message_bytes = std::size_t{64}
                                  << 10;  ///< a frame, both ways; senders are checked first
  std::size_t max_frames = 3;             ///< of a received message, without the peer's identity
  int max_queued = 1000;                  ///< messages a peer, each way
  Duration handshake_timeout = std::chrono::seconds(2);
  Duration heartbeat_interval = std::chrono::seconds(1);
  Duration heartbeat_timeout = std::chrono::seconds(5);
  Duration linger{};      ///< how long closing waits for what is queued, at most
  bool reconnect = true;  ///< dealer: a lost connection is joined again, without a word
  /// Dealer: who it is to the ROUTER; up to 255 bytes, new for each connection.
  std::string routing_id;
  /// CURVE. A router socket takes `keys->own` and lets in the context's peers of `allowed`; a
  /// dealer shows `keys->own` and wants the router to hold `keys->server_key`.
  std::optional<Keys> keys;
  std::vector<Role> allowed;  ///< router socket with keys
};

/// A message that came. On a router socket `peer` is the sender's identity, and `role` that of its
/// key.
struct Received {
  std::string peer;
  Role role = Role::kNone;
  std::vector<Frame> frames;
};

/// A ZeroMQ socket with the project's options. One thread at a time; none of the calls blocks
/// unless it takes a deadline.
class Socket final {
 public:
  /// Refuses to send to a peer that is not there (kUnavailable) and never hands a route over to
  /// another connection.
  static Result<Socket> router(Context& context, SocketOptions options);
  /// Queues nothing for a connection that is not there yet.
  static Result<Socket> dealer(Context& context, SocketOptions options);
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  /// tcp://HOST:PORT (port 0 or *: any free one), ipc://PATH or inproc://NAME. Returns the endpoint
  /// peers connect to. Without keys only loopback, ipc and inproc are allowed.
  [[nodiscard]] Result<std::string> bind(const std::string& endpoint);
  [[nodiscard]] Status connect(const std::string& endpoint);

  /// Dealer. All frames or none. kResourceExhausted: no connection yet, or its queue is full;
  /// kInvalidArgument: a frame over max_message_bytes (it would cost the connection and what is
  /// queued behind it).
  [[nodiscard]] Status send(std::vector<Frame> frames);
  /// As send, waiting for a connection and room until the deadline (kDeadlineExceeded).
  [[nodiscard]] Status send_until(std::vector<Frame> frames, TimePoint deadline);
  /// Router. kUnavailable: no such peer (any more). A peer that leaves with a full queue is seen to
  /// be gone only after receive() has read to the end: owners always do both.
  [[nodiscard]] Status send_to(const std::string& peer, std::vector<Frame> frames);

  /// Nothing when no message waits. kDataLoss for one with too many frames: it is gone, the peer
  /// named in the message; call again.
  [[nodiscard]] Result<std::optional<Received>> receive();
  [[nodiscard]] Result<std::optional<Received>> receive_until(TimePoint deadline);

 private:
  friend struct SocketAccess;
  Socket(void* handle, bool is_router, SocketOptions options);
  Status apply_options();
  Status apply_keys(bool authenticates);
  Status send_frames(std::vector<Frame>& frames, const std::string* peer);
  Status check_sizes(const std::vector<Frame>& frames) const;

  void* handle_ = nullptr;
  bool is_router_ = false;
  std::vector<std::string> ipc_paths_;  ///< bound here: libzmq leaves the files behind
  SocketOptions options_;
};

}  // namespace brigade::net
