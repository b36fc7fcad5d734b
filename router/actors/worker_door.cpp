// SPDX-License-Identifier: Apache-2.0
#include "router/actors/worker_door.h"

#include <algorithm>
#include <array>

#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::router {
namespace {

constexpr std::size_t kMaxOutbox = 1 << 16;
/// Messages read in one round, so that sends wait no longer.
constexpr int kReadsPerRound = 256;
constexpr Duration kThrottlePause = std::chrono::milliseconds(2);
constexpr Duration kIdleWait = std::chrono::hours(1);
/// After a connection has ended: by then a send to that peer fails.
constexpr Duration kProbeDelay = std::chrono::milliseconds(10);
constexpr Duration kLastWords = std::chrono::milliseconds(200);

std::vector<net::Frame> two_frames(std::span<const std::byte> sequence, net::Frame body) {
  std::vector<net::Frame> frames;
  frames.emplace_back(sequence);
  frames.push_back(std::move(body));
  return frames;
}

}  // namespace

Result<std::unique_ptr<WorkerDoor>> WorkerDoor::open(net::Context& context,
                                                     WorkerDoorOptions options) {
  // ZMQ's heartbeats stay off: a worker's own tell more.
  net::SocketOptions socket_options = {.max_message_bytes = wire::kMaxStepBytes,
                                       .max_frames = 2,
                                       .heartbeat_interval = Duration::zero(),
                                       .linger = kLastWords,
                                       .keys = options.keys,
                                       .allowed = {net::Role::kWorker}};
  ASSIGN_OR_RETURN(net::Socket socket, net::Socket::router(context, std::move(socket_options)));
  ASSIGN_OR_RETURN(auto watch, net::DisconnectWatch::start(context, socket));
  std::vector<std::string> endpoints;
  for (const std::string& endpoint : options.endpoints) {
    ASSIGN_OR_RETURN(std::string bound, socket.bind(endpoint));
    endpoints.push_back(std::move(bound));
  }
  return std::unique_ptr<WorkerDoor>(new WorkerDoor(std::move(socket), std::move(watch),
                                                    std::move(endpoints), std::move(options)));
}

WorkerDoor::WorkerDoor(net::Socket socket, std::unique_ptr<net::DisconnectWatch> watch,
                       std::vector<std::string> endpoints, WorkerDoorOptions options)
    : socket_(std::move(socket)),
      watch_(std::move(watch)),
      endpoints_(std::move(endpoints)),
      options_(std::move(options)),
      outbox_(kMaxOutbox) {}

WorkerDoor::~WorkerDoor() {
  stop("the router ends", Clock::now());
}

void WorkerDoor::start() {
  thread_ = std::thread([this] { loop(); });
}

void WorkerDoor::stop(const std::string& reason, TimePoint deadline) {
  if (!thread_.joinable()) return;
  release_reason_ = reason;
  stop_deadline_ = deadline;
  outbox_.close();
  thread_.join();
}

void WorkerDoor::loop() {
  net::Poller poller;
  poller.add(socket_);
  poller.add(*watch_);
  poller.add_fd(outbox_.fd());
  while (true) {
    send_waiting();
    receive_some();
    const TimePoint now = Clock::now();
    probe(now);
    if (outbox_.closed() && done(now)) return;
    if (throttled_) {
      // Not the socket: it is readable, and we do not want to read it.
      net::Poller outbox_only;
      outbox_only.add_fd(outbox_.fd());
      (void)outbox_only.wait(now + kThrottlePause);
      continue;
    }
    const Result<bool> waited = poller.wait(next_wake(now));
    if (!waited.ok()) log_error(str_cat("worker door: ", waited.status().message()));
  }
}

bool WorkerDoor::done(TimePoint now) {
  if (!released_) {
    released_ = true;
    const net::Frame release(encoder_.encode(wire::ToWorker(wire::Release{release_reason_})));
    std::vector<WorkerId> workers;
    for (const auto& [worker, peer] : peers_)
      workers.push_back(worker);
    for (const WorkerId worker : workers)
      send_one(worker, net::Frame(release.bytes()));
  }
  const bool all_left = std::ranges::all_of(peers_, [](const auto& p) { return p.second.left; });
  return all_left || now >= stop_deadline_;
}

void WorkerDoor::receive_some() {
  throttled_ = options_.congested && options_.congested();
  for (int i = 0; i < kReadsPerRound && !throttled_; ++i) {
    Result<std::optional<net::Received>> received = socket_.receive();
    if (!received.ok()) {
      log_warning(str_cat("worker door: ", received.status().message()));
    } else if (!received->has_value()) {
      return;
    } else {
      accept(std::move(**received));
    }
  }
}

void WorkerDoor::accept(net::Received received) {
  const auto known = by_identity_.find(received.peer);
  if (known == by_identity_.end()) {
    accept_stranger(std::move(received));
  } else {
    deliver(known->second, received);
  }
}

void WorkerDoor::accept_stranger(net::Received received) {
  Peer peer{.identity = received.peer, .in = {}, .out = {}, .last_heard = Clock::now()};
  Status status;
  if (received.frames.size() != 2) {
    status = data_loss("a message has two frames");
  } else if (status = peer.in.accept(received.frames[0].bytes()); status.ok()) {
    Result<wire::FromWorker> message = wire::decode_from_worker(received.frames[1].bytes());
    if (!message.ok()) {
      status = message.status();
    } else if (!std::holds_alternative<wire::Hello>(*message)) {
      status = failed_precondition("its first message is no Hello");
    } else if (peers_.size() >= options_.max_workers) {
      status = resource_exhausted(str_cat("there are ", peers_.size(), " workers already"));
    } else {
      const WorkerId worker = next_worker_++;
      by_identity_[peer.identity] = worker;
      peers_[worker] = std::move(peer);
      options_.on_message(worker, std::move(message).value());
      return;
    }
  }
  log_warning(str_cat("unknown worker ", quoted(received.peer), ": ", status.message()));
  // It may have been known before a restart or a gap: break its sequence, so that it says Hello.
  std::array<std::byte, 8> broken;
  std::ranges::fill(broken, std::byte{0xff});
  static_assert(wire::kBrokenSequence == ~std::uint64_t{0});
  net::Frame body(encoder_.encode(
      wire::ToWorker(wire::Abort{.epoch = 0, .reason = "say Hello: " + status.message()})));
  (void)socket_.send_to(received.peer, two_frames(broken, std::move(body)));
}

void WorkerDoor::deliver(WorkerId worker, const net::Received& received) {
  Peer& peer = peers_.at(worker);
  peer.last_heard = Clock::now();
  if (peer.left) return;
  Status status;
  if (received.frames.size() != 2) {
    status = data_loss("a message has two frames");
  } else {
    status = peer.in.accept(received.frames[0].bytes());
  }
  if (!status.ok()) return forget(worker, status.message());
  Result<wire::FromWorker> message = wire::decode_from_worker(received.frames[1].bytes());
  if (!message.ok()) return forget(worker, message.status().message());
  // The core knows what a goodbye means; the peer itself is forgotten when it cannot be reached any
  // more.
  peer.left = std::holds_alternative<wire::Goodbye>(*message);
  options_.on_message(worker, std::move(message).value());
}

void WorkerDoor::send_waiting() {
  outbox_.take(sending_);
  for (WorkerSend& send : sending_)
    send_one(send.worker, std::move(send.body));
}

bool WorkerDoor::send_one(WorkerId worker, net::Frame body) {
  const auto it = peers_.find(worker);
  if (it == peers_.end()) return false;
  const auto sequence = it->second.out.next();
  const Status status = socket_.send_to(it->second.identity, two_frames(sequence, std::move(body)));
  if (status.ok()) return true;
  forget(worker, status.message());
  return false;
}

void WorkerDoor::probe(TimePoint now) {
  if (watch_->take()) probe_all_at_ = now + kProbeDelay;
  const bool all = probe_all_at_ && now >= *probe_all_at_;
  if (all) probe_all_at_.reset();
  std::vector<WorkerId> silent;
  for (auto& [worker, peer] : peers_) {
    if (!all && now - peer.last_heard < options_.probe_after) continue;
    // Once a period, whatever comes of it.
    peer.last_heard = now;
    silent.push_back(worker);
  }
  if (silent.empty()) return;
  net::Frame ack(encoder_.encode(wire::ToWorker(wire::HeartbeatAck{})));
  for (const WorkerId worker : silent)
    send_one(worker, ack.share());
}

void WorkerDoor::forget(WorkerId worker, const std::string& reason) {
  const auto it = peers_.find(worker);
  const bool left = it->second.left;
  by_identity_.erase(it->second.identity);
  peers_.erase(it);
  if (!left) options_.on_lost(worker, reason);
}

TimePoint WorkerDoor::next_wake(TimePoint now) const {
  TimePoint wake = now + kIdleWait;
  for (const auto& [worker, peer] : peers_) {
    wake = std::min(wake, peer.last_heard + options_.probe_after);
  }
  if (probe_all_at_) wake = std::min(wake, *probe_all_at_);
  if (outbox_.closed()) wake = std::min(wake, stop_deadline_);
  return wake;
}

}  // namespace brigade::router
