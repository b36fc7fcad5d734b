// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/net/keys.h"

namespace brigade::net {

class Authenticator;

/// One process's ZeroMQ: its I/O thread and, for servers with keys, the thread that decides which
/// keys may enter. Sockets must be gone before their context.
class Context final {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// The keys that sockets with keys let in, from the next handshake on, in place of those named
  /// before; connections that stand are left alone. Must precede the first bind with keys: CURVE
  /// without it would let any key in, so Socket refuses. From any thread.
  [[nodiscard]] Status allow_peers(std::vector<AllowedPeer> peers);
  [[nodiscard]] bool authenticates() const { return authenticator_ != nullptr; }

 private:
  friend struct ContextAccess;
  void* handle_;
  std::unique_ptr<Authenticator> authenticator_;
};

}  // namespace brigade::net
