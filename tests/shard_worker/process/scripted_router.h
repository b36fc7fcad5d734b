// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/time.h"
#include "common/net/context.h"
#include "common/net/socket.h"
#include "common/wire/codec.h"
#include "common/wire/messages.h"
#include "common/wire/sequence.h"

namespace brigade::worker {

/// The router's side of the worker protocol, played by a test: answers heartbeats, keeps the rest
/// for the script.
class ScriptedRouter final {
 public:
  explicit ScriptedRouter(const std::string& endpoint);

  /// The next message of this kind from this peer ("" for any); others before it stay for later
  /// calls. Fails the test when none comes in time.
  template <typename Message>
  Message expect(const std::string& peer, Duration at_most = std::chrono::seconds(20)) {
    const TimePoint deadline = Clock::now() + at_most;
    std::optional<Message> found;
    do {
      found = take<Message>(peer);
    } while (!found && receive_one(deadline));
    REQUIRE_MESSAGE(found.has_value(), "no message of this kind from " << peer);
    return *found;
  }
  /// As expect, or nothing at the deadline.
  template <typename Message>
  std::optional<Message> wait(const std::string& peer, Duration at_most) {
    const TimePoint deadline = Clock::now() + at_most;
    std::optional<Message> found;
    do {
      found = take<Message>(peer);
    } while (!found && receive_one(deadline));
    return found;
  }
  void send(const std::string& peer, const wire::ToWorker& message);
  void send_raw(const std::string& peer, std::vector<net::Frame> frames);
  /// Whose message expect() or wait() found last.
  [[nodiscard]] const std::string& last_peer() const { return last_peer_; }
  /// Forget a peer's messages.
  void forget(const std::string& peer);
  /// Heartbeats are kept for the script too, the newest of each peer.
  [[nodiscard]] std::optional<wire::Heartbeat> last_heartbeat(const std::string& peer) const;
  /// Reads for a while, or until `done` holds; returns whether it did.
  bool read_until(const std::function<bool()>& done, Duration at_most);

 private:
  struct Link {
    wire::SequenceIn in;
    wire::SequenceOut out;
    std::optional<wire::Heartbeat> heartbeat;
  };
  struct Kept {
    std::string peer;
    wire::FromWorker message;
  };

  template <typename Message>
  std::optional<Message> take(const std::string& peer) {
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
      auto* message = std::get_if<Message>(&kept->message);
      if (message == nullptr || (!peer.empty() && kept->peer != peer)) continue;
      last_peer_ = kept->peer;
      std::optional<Message> found = std::move(*message);
      kept_.erase(kept);
      return found;
    }
    return std::nullopt;
  }
  bool receive_one(TimePoint deadline);

  net::Context context_;
  net::Socket socket_;
  wire::Encoder encoder_;
  std::map<std::string, Link> links_;
  std::deque<Kept> kept_;
  std::string last_peer_;
};

}  // namespace brigade::worker
