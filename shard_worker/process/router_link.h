// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/net/context.h"
#include "common/net/keys.h"
#include "common/net/outbox.h"
#include "common/net/poller.h"
#include "common/net/socket.h"
#include "common/wire/codec.h"
#include "common/wire/messages.h"
#include "common/wire/sequence.h"

namespace brigade::worker {

/// The thread that owns the connection to the router. It connects, says hello, and hands on what
/// comes; when the router is gone (the connection broke, or nothing came for router_timeout though
/// every heartbeat is answered) it tells so, and begins again with a new identity and a new hello,
/// for as long as it takes.
class RouterLink final {
 public:
  struct Options {
    std::string endpoint;
    wire::Hello hello;
    std::optional<net::Keys> keys;  ///< absent: a router that asks for none
    Duration router_timeout = std::chrono::seconds(10);
    Duration give_up_after = Duration::zero();  ///< without a connection; zero: never
    // Called on the link's thread; must not block.
    std::function<void(wire::StepCommand)> on_step;
    std::function<void(Duration)> on_beat_interval;  ///< that the router wishes
    std::function<void(wire::ToWorker)> on_message;  ///< the rest
    std::function<void()> on_lost;
    std::function<void()> on_give_up;
  };

  /// `context` outlives the link. Nothing happens before start().
  RouterLink(net::Context& context, Options options);
  ~RouterLink();
  RouterLink(const RouterLink&) = delete;
  RouterLink& operator=(const RouterLink&) = delete;

  void start();
  /// From any thread. What cannot be sent because there is no router is dropped: its epoch has
  /// ended.
  void send(wire::FromWorker message);
  /// Sends what waits, then ends the thread.
  void finish();

 private:
  /// Why a connection ended.
  enum class End : std::uint8_t { kFinished, kLost };

  void loop();
  /// A fresh connection on which hello has been sent, or nothing when finish() came first.
  bool connect();
  Result<net::Socket> make_socket();
  Status try_connect();
  End serve();
  Status receive_all();
  Status dispatch(net::Received received);
  Status send_all();
  std::vector<net::Frame> to_frames(const wire::FromWorker& message);
  /// Waits, unless finish() comes.
  void pause(Duration duration);
  [[nodiscard]] bool finishing() const { return outbox_.closed(); }

  net::Context& context_;
  Options options_;
  net::Outbox<wire::FromWorker> outbox_;
  // Of the thread alone.
  std::optional<net::Socket> socket_;
  wire::SequenceOut sequence_out_;
  wire::SequenceIn sequence_in_;
  wire::Encoder encoder_;
  std::vector<wire::FromWorker> sending_;
  std::uint64_t num_connections_ = 0;
  TimePoint last_heard_{};
  bool gave_up_ = false;
  std::thread thread_;
};

}  // namespace brigade::worker
