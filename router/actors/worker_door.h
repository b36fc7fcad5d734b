// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/base/status.h"
#include "common/net/disconnect_watch.h"
#include "common/net/outbox.h"
#include "common/net/poller.h"
#include "common/net/socket.h"
#include "common/wire/codec.h"
#include "common/wire/sequence.h"
#include "router/core/types.h"

namespace brigade::router {

/// One encoded message to one worker; frames of equal messages share their bytes.
struct WorkerSend {
  WorkerId worker = 0;
  net::Frame body;
};

struct WorkerDoorOptions {
  std::vector<std::string> endpoints;  ///< to bind, all on one socket
  std::optional<net::Keys> keys;
  Duration probe_after = std::chrono::seconds(5);  ///< of silence
  std::size_t max_workers = 4096;

  // Called from the door's thread; must not block.
  std::function<void(WorkerId, wire::FromWorker)> on_message;
  std::function<void(WorkerId, std::string reason)> on_lost;
  std::function<bool()> congested;  ///< true: read nothing for a moment
};

/// The socket that workers connect to, and the thread that owns it. A connection is one identity on
/// the socket; it gets a WorkerId with its Hello. Messages are two frames: sequence number, body. A
/// worker that is gone is noticed by its Goodbye or because a send cannot be routed: all are sent a
/// HeartbeatAck when some connection has ended, and one that is silent to find out. (A worker that
/// hangs is the core's to notice, by its heartbeats.)
class WorkerDoor final {
 public:
  static Result<std::unique_ptr<WorkerDoor>> open(net::Context& context, WorkerDoorOptions options);
  /// Stops at once if stop() has not been called.
  ~WorkerDoor();

  /// Where workers connect to, with real ports.
  [[nodiscard]] const std::vector<std::string>& endpoints() const { return endpoints_; }

  void start();
  /// From any thread. False when the outbox is full: nothing was taken.
  [[nodiscard]] bool send(std::vector<WorkerSend>& sends) { return outbox_.push_all(sends); }
  /// Releases every worker and waits until each has left, at most until the deadline.
  void stop(const std::string& reason, TimePoint deadline);

 private:
  struct Peer {
    std::string identity;
    wire::SequenceIn in;
    wire::SequenceOut out;
    TimePoint last_heard;
    bool left = false;  ///< it said goodbye: what it still says is of no account
  };

  WorkerDoor(net::Socket socket, std::unique_ptr<net::DisconnectWatch> watch,
             std::vector<std::string> endpoints, WorkerDoorOptions options);
  void loop();
  bool done(TimePoint now);
  void receive_some();
  void accept(net::Received received);
  void accept_stranger(net::Received received);
  void deliver(WorkerId worker, const net::Received& received);
  void send_waiting();
  /// False when the peer is gone: it is forgotten then, and the loss told.
  bool send_one(WorkerId worker, net::Frame body);
  void probe(TimePoint now);
  void forget(WorkerId worker, const std::string& reason);
  [[nodiscard]] TimePoint next_wake(TimePoint now) const;

  net::Socket socket_;
  std::unique_ptr<net::DisconnectWatch> watch_;
  std::vector<std::string> endpoints_;
  WorkerDoorOptions options_;
  net::Outbox<WorkerSend> outbox_;
  std::vector<WorkerSend> sending_;
  wire::Encoder encoder_;
  std::unordered_map<WorkerId, Peer> peers_;
  std::unordered_map<std::string, WorkerId> by_identity_;
  WorkerId next_worker_ = 1;
  bool throttled_ = false;
  std::optional<TimePoint> probe_all_at_;  ///< a connection has ended

  // Written before the outbox is closed, read after.
  std::string release_reason_;
  TimePoint stop_deadline_;
  bool released_ = false;
  std::thread thread_;
};

}  // namespace brigade::router
