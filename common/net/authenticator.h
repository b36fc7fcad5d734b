// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/net/event_fd.h"
#include "common/net/keys.h"

namespace brigade::net {

/// The ZAP handler (RFC 27): answers libzmq's question whether a key may enter a socket. A key is
/// let in when it is listed and its role is one of those that the socket's domain names. Libzmq
/// asks at each handshake, which it bounds by the handshake time-out, so a refusal costs a peer's
/// connection and nothing more.
class Authenticator final {
 public:
  /// Bound and running when it returns, before any socket with keys is.
  static Result<std::unique_ptr<Authenticator>> start(void* zmq_context);
  ~Authenticator();

  /// Lets in these in place of those before; their keys are valid (check_public_key). From any
  /// thread.
  void allow(std::vector<AllowedPeer> peers);

 private:
  explicit Authenticator(void* socket);
  void run();
  void answer();
  /// Role and name of an allowed peer: `role:name`; empty when it is refused.
  [[nodiscard]] std::string admit(const std::vector<std::string>& request);
  void note_refusal(const std::vector<std::string>& request);

  void* socket_;
  std::mutex mutex_;
  std::map<std::string, AllowedPeer> peers_;  ///< by the key's 32 bytes; under mutex_
  EventFd stop_;
  std::uint64_t refused_ = 0;
  std::thread thread_;
};

}  // namespace brigade::net
