// SPDX-License-Identifier: Apache-2.0
#include "tests/shard_worker/process/scripted_router.h"

#include <utility>

namespace brigade::worker {
namespace {

net::Socket make_socket(net::Context& context, const std::string& endpoint) {
  auto socket =
      net::Socket::router(context, {.max_message_bytes = wire::kMaxStepBytes, .max_frames = 2});
  REQUIRE_MESSAGE(socket.ok(), socket.status().message());
  const auto bound = socket->bind(endpoint);
  REQUIRE_MESSAGE(bound.ok(), bound.status().message());
  return std::move(socket).value();
}

}  // namespace

ScriptedRouter::ScriptedRouter(const std::string& endpoint)
    : socket_(make_socket(context_, endpoint)) {}

void ScriptedRouter::send(const std::string& peer, const wire::ToWorker& message) {
  std::vector<net::Frame> frames;
  frames.emplace_back(std::span<const std::byte>(links_[peer].out.next()));
  frames.emplace_back(encoder_.encode(message));
  send_raw(peer, std::move(frames));
}

void ScriptedRouter::send_raw(const std::string& peer, std::vector<net::Frame> frames) {
  // A worker that was killed is gone: the script goes on.
  const Status sent = socket_.send_to(peer, std::move(frames));
  CHECK((sent.ok() || sent.code() == StatusCode::kUnavailable));
}

void ScriptedRouter::forget(const std::string& peer) {
  std::erase_if(kept_, [&](const Kept& kept) { return kept.peer == peer; });
}

std::optional<wire::Heartbeat> ScriptedRouter::last_heartbeat(const std::string& peer) const {
  const auto link = links_.find(peer);
  return link == links_.end() ? std::nullopt : link->second.heartbeat;
}

bool ScriptedRouter::read_until(const std::function<bool()>& done, Duration at_most) {
  const TimePoint deadline = Clock::now() + at_most;
  while (!done()) {
    if (!receive_one(deadline)) return done();
  }
  return true;
}

bool ScriptedRouter::receive_one(TimePoint deadline) {
  auto received = socket_.receive_until(deadline);
  REQUIRE_MESSAGE(received.ok(), received.status().message());
  if (!received->has_value()) return false;
  const std::string& peer = (*received)->peer;
  const std::vector<net::Frame>& frames = (*received)->frames;
  REQUIRE(frames.size() == 2);
  Link& link = links_[peer];
  const Status in_order = link.in.accept(frames[0].bytes());
  REQUIRE_MESSAGE(in_order.ok(), in_order.message());
  auto message = wire::decode_from_worker(frames[1].bytes());
  REQUIRE_MESSAGE(message.ok(), message.status().message());
  if (const auto* beat = std::get_if<wire::Heartbeat>(&*message)) {
    link.heartbeat = *beat;
    send(peer, wire::HeartbeatAck{.epoch = beat->epoch});
  } else {
    kept_.push_back({peer, std::move(*message)});
  }
  return true;
}

}  // namespace brigade::worker
