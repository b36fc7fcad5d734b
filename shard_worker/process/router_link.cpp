// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/process/router_link.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::worker {
namespace {

constexpr std::size_t kMaxOutbox = 4096;
constexpr Duration kConnectTimeout = std::chrono::milliseconds(400);
/// Between attempts, and after a router that made no sense: it must not be asked again at once and
/// for ever.
constexpr Duration kRetryPause = std::chrono::milliseconds(200);
/// The last words (goodbye) still leave after the socket is closed.
constexpr Duration kLinger = std::chrono::milliseconds(500);

}  // namespace

RouterLink::RouterLink(net::Context& context, Options options)
    : context_(context), options_(std::move(options)), outbox_(kMaxOutbox) {}

RouterLink::~RouterLink() {
  finish();
}

void RouterLink::start() {
  thread_ = std::thread([this] { loop(); });
}

void RouterLink::send(wire::FromWorker message) {
  if (!outbox_.push(std::move(message)) && !outbox_.closed()) {
    log_error("the outbox to the router is full: a message is lost");
  }
}

void RouterLink::finish() {
  outbox_.close();
  if (thread_.joinable()) thread_.join();
}

void RouterLink::loop() {
  while (connect()) {
    if (serve() == End::kFinished) return;
    socket_.reset();
    options_.on_lost();
  }
}

Result<net::Socket> RouterLink::make_socket() {
  // A connection is never joined again behind our back: what was queued on it is lost, and the
  // router may be another one. ZMQ's heartbeats stay off: ours are answered by the router, and tell
  // more.
  net::SocketOptions options{.max_message_bytes = wire::kMaxStepBytes,
                             .max_frames = 2,
                             .heartbeat_interval = Duration::zero(),
                             .reconnect = false,
                             .routing_id = str_cat("worker-", std::hex, options_.hello.incarnation,
                                                   '-', num_connections_)};
  options.linger = kLinger;
  options.keys = options_.keys;
  ++num_connections_;
  ASSIGN_OR_RETURN(net::Socket socket, net::Socket::dealer(context_, std::move(options)));
  RETURN_IF_ERROR(socket.connect(options_.endpoint));
  return socket;
}

bool RouterLink::connect() {
  const TimePoint begin = Clock::now();
  bool told = false;
  while (!finishing()) {
    const Status status = try_connect();
    if (status.ok()) {
      last_heard_ = Clock::now();
      log_info(str_cat("connected to the router at ", options_.endpoint));
      return true;
    }
    if (!std::exchange(told, true)) {
      log_info(str_cat("waits for the router at ", options_.endpoint, ": ", status.message()));
    }
    const bool tired =
        options_.give_up_after > Duration::zero() && Clock::now() - begin >= options_.give_up_after;
    if (tired && !std::exchange(gave_up_, true)) options_.on_give_up();
    pause(kRetryPause);
  }
  return false;
}

Status RouterLink::try_connect() {
  ASSIGN_OR_RETURN(net::Socket socket, make_socket());
  sequence_out_ = {};
  sequence_in_ = {};
  RETURN_IF_ERROR(socket.send_until(to_frames(options_.hello), Clock::now() + kConnectTimeout));
  socket_ = std::move(socket);
  return {};
}

RouterLink::End RouterLink::serve() {
  net::Poller poller;
  poller.add(*socket_);
  poller.add_fd(outbox_.fd());
  for (;;) {
    const bool last_round = finishing();
    Status status = send_all();
    if (last_round) return End::kFinished;
    if (status.ok()) status = receive_all();
    if (status.ok() && Clock::now() - last_heard_ >= options_.router_timeout) {
      status = deadline_exceeded("the router is silent");
    }
    if (status.ok()) status = poller.wait(last_heard_ + options_.router_timeout).status();
    if (!status.ok()) {
      log_warning(str_cat("lost the router: ", status.message()));
      if (status.code() == StatusCode::kDataLoss) pause(kRetryPause);
      return finishing() ? End::kFinished : End::kLost;
    }
  }
}

Status RouterLink::receive_all() {
  for (;;) {
    ASSIGN_OR_RETURN(auto received, socket_->receive());
    if (!received) return {};
    RETURN_IF_ERROR(dispatch(std::move(*received)));
  }
}

Status RouterLink::dispatch(net::Received received) {
  if (received.frames.size() != 2) {
    return data_loss(str_cat("a message of ", received.frames.size(), " frames, not 2"));
  }
  RETURN_IF_ERROR(sequence_in_.accept(received.frames[0].bytes()));
  ASSIGN_OR_RETURN(wire::ToWorker message, wire::decode_to_worker(received.frames[1].bytes()));
  last_heard_ = Clock::now();
  if (auto* step = std::get_if<wire::StepCommand>(&message)) {
    options_.on_step(std::move(*step));
  } else if (const auto* ack = std::get_if<wire::HeartbeatAck>(&message)) {
    if (ack->interval_ms > 0)
      options_.on_beat_interval(std::chrono::milliseconds(ack->interval_ms));
  } else {
    options_.on_message(std::move(message));
  }
  return {};
}

std::vector<net::Frame> RouterLink::to_frames(const wire::FromWorker& message) {
  std::vector<net::Frame> frames;
  frames.emplace_back(std::span<const std::byte>(sequence_out_.next()));
  frames.emplace_back(encoder_.encode(message));
  return frames;
}

Status RouterLink::send_all() {
  outbox_.take(sending_);
  for (const wire::FromWorker& message : sending_) {
    // The queue holds a thousand: no room means no router.
    RETURN_IF_ERROR(socket_->send(to_frames(message)));
  }
  return {};
}

void RouterLink::pause(Duration duration) {
  net::Poller poller;
  poller.add_fd(outbox_.fd());
  const TimePoint deadline = Clock::now() + duration;
  while (!finishing() && Clock::now() < deadline) {
    outbox_.take(sending_);
    if (!poller.wait(deadline).ok()) return;
  }
}

}  // namespace brigade::worker
