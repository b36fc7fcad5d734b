// SPDX-License-Identifier: Apache-2.0
#include "common/net/socket.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <optional>

#include "common/net/disconnect_watch.h"
#include "common/net/poller.h"

namespace brigade::net {
namespace {

TimePoint in_ms(int ms) {
  return Clock::now() + std::chrono::milliseconds(ms);
}

std::vector<Frame> message(std::string_view text) {
  std::vector<Frame> frames;
  frames.emplace_back(text);
  return frames;
}

std::string error_of(const Status& status) {
  return status.message();
}

Socket make_dealer(Context& context, const std::string& endpoint, SocketOptions options = {}) {
  auto socket = Socket::dealer(context, std::move(options));
  REQUIRE_MESSAGE(socket.ok(), error_of(socket.status()));
  REQUIRE(socket->connect(endpoint).ok());
  return std::move(socket).value();
}

struct Listener {
  explicit Listener(Context& context, SocketOptions options = {},
                    const std::string& where = "tcp://127.0.0.1:0") {
    auto made = Socket::router(context, std::move(options));
    REQUIRE_MESSAGE(made.ok(), error_of(made.status()));
    socket.emplace(std::move(made).value());
    auto bound = socket->bind(where);
    REQUIRE_MESSAGE(bound.ok(), error_of(bound.status()));
    endpoint = *bound;
  }
  std::optional<Socket> socket;
  std::string endpoint;
};

/// Keys of a router, and of one peer of each role, all listed.
struct KeyRing {
  Keys router = {.role = Role::kRouter, .own = generate_key_pair().value()};
  Keys of(Role role) {
    Keys keys = {
        .role = role, .own = generate_key_pair().value(), .server_key = router.own.public_key};
    router.peers.push_back({keys.own.public_key, role, "peer"});
    return keys;
  }
};

/// Whether a peer with these options gets a message through to the listener.
bool reaches(Context& context, Listener& listener, SocketOptions options) {
  Socket dealer = make_dealer(context, listener.endpoint, std::move(options));
  const Status sent = dealer.send_until(message("knock"), in_ms(400));
  auto got = listener.socket->receive_until(in_ms(sent.ok() ? 2000 : 100));
  return got.ok() && got->has_value();
}

}  // namespace

TEST_CASE("messages go both ways with the peer's identity") {
  Context context;
  Listener listener(context);
  CHECK(listener.endpoint.starts_with("tcp://127.0.0.1:"));
  Socket dealer = make_dealer(context, listener.endpoint, {.routing_id = "worker-1"});
  std::vector<Frame> frames = message("one");
  frames.emplace_back(std::string_view("two"));
  REQUIRE(dealer.send_until(std::move(frames), in_ms(5000)).ok());
  const auto got = listener.socket->receive_until(in_ms(5000));
  REQUIRE(got.ok());
  REQUIRE(got->has_value());
  CHECK((*got)->peer == "worker-1");
  CHECK((*got)->role == Role::kNone);
  REQUIRE((*got)->frames.size() == 2);
  CHECK((*got)->frames[1].text() == "two");
  Frame answer(std::string_view("three"));
  for (int i = 0; i < 2; ++i) {
    std::vector<Frame> shared;
    shared.push_back(answer.share());
    REQUIRE(listener.socket->send_to("worker-1", std::move(shared)).ok());
    const auto back = dealer.receive_until(in_ms(5000));
    REQUIRE(back->has_value());
    CHECK((*back)->frames[0].text() == "three");
  }
}

TEST_CASE("a send to a peer that is not there is reported, not lost in silence") {
  Context context;
  Listener listener(context);
  CHECK(listener.socket->send_to("nobody", message("x")).code() == StatusCode::kUnavailable);
  {
    Socket dealer = make_dealer(context, listener.endpoint, {.routing_id = "short-lived"});
    REQUIRE(dealer.send_until(message("hi"), in_ms(5000)).ok());
    REQUIRE(listener.socket->receive_until(in_ms(5000))->has_value());
    CHECK(listener.socket->send_to("short-lived", message("x")).ok());
  }
  // What was sent before the close was seen went into its queue, which may fill meanwhile; libzmq
  // ends such a pipe only when it has been read to its end.
  Status status;
  const TimePoint deadline = in_ms(5000);
  while (status.code() != StatusCode::kUnavailable && Clock::now() < deadline) {
    status = listener.socket->send_to("short-lived", message("x"));
    REQUIRE(listener.socket->receive().ok());
  }
  CHECK(status.code() == StatusCode::kUnavailable);
}

TEST_CASE("an impostor does not take over the route of a connected peer") {
  Context context;
  Listener listener(context);
  Socket first = make_dealer(context, listener.endpoint, {.routing_id = "same"});
  REQUIRE(first.send_until(message("first"), in_ms(5000)).ok());
  REQUIRE(listener.socket->receive_until(in_ms(5000))->has_value());
  Socket second = make_dealer(context, listener.endpoint, {.routing_id = "same"});
  (void)second.send_until(message("second"), in_ms(200));
  REQUIRE(listener.socket->send_to("same", message("for first")).ok());
  const auto got = first.receive_until(in_ms(5000));
  REQUIRE(got->has_value());
  CHECK((*got)->frames[0].text() == "for first");
  CHECK_FALSE(second.receive_until(in_ms(50))->has_value());
}

TEST_CASE("a message over the bound is refused before it is sent, and by the receiver") {
  Context context;
  Listener listener(context, {.max_message_bytes = 100});
  Socket honest = make_dealer(context, listener.endpoint, {.max_message_bytes = 100});
  CHECK(honest.send_until(message(std::string(101, 'x')), in_ms(5000)).code() ==
        StatusCode::kInvalidArgument);
  REQUIRE(honest.send_until(message(std::string(100, 'x')), in_ms(5000)).ok());
  REQUIRE(listener.socket->receive_until(in_ms(5000))->has_value());
  Socket hostile = make_dealer(context, listener.endpoint, {.max_message_bytes = 1000000});
  REQUIRE(hostile.send_until(message(std::string(1000000, 'x')), in_ms(5000)).ok());
  CHECK_FALSE(listener.socket->receive_until(in_ms(50))->has_value());
  REQUIRE(honest.send_until(message("still here"), in_ms(5000)).ok());
  CHECK(listener.socket->receive_until(in_ms(5000))->has_value());
}

TEST_CASE("a message of too many frames is refused and the next one comes") {
  Context context;
  Listener listener(context, {.max_frames = 2});
  Socket dealer = make_dealer(context, listener.endpoint);
  std::vector<Frame> frames;
  for (int i = 0; i < 100; ++i)
    frames.emplace_back(std::string_view("x"));
  REQUIRE(dealer.send_until(std::move(frames), in_ms(5000)).ok());
  CHECK(listener.socket->receive_until(in_ms(5000)).status().code() == StatusCode::kDataLoss);
  REQUIRE(dealer.send(message("next")).ok());
  CHECK(listener.socket->receive_until(in_ms(5000))->has_value());
}

TEST_CASE("a connection that never comes is a deadline, not a hang") {
  Context context;
  Socket dealer = make_dealer(context, "ipc:///tmp/brigade-nobody-listens-here");
  CHECK(dealer.send(message("x")).code() == StatusCode::kResourceExhausted);
  CHECK(dealer.send_until(message("x"), in_ms(30)).code() == StatusCode::kDeadlineExceeded);
  CHECK_FALSE(dealer.receive_until(in_ms(10))->has_value());
}

TEST_CASE("binding where others reach it needs keys") {
  Context context;
  auto socket = Socket::router(context, {});
  REQUIRE(socket.ok());
  CHECK(socket->bind("tcp://0.0.0.0:*").status().code() == StatusCode::kPermissionDenied);
  CHECK(socket->bind("tcp://*:*").status().code() == StatusCode::kPermissionDenied);
  CHECK(socket->bind("nonsense").status().code() == StatusCode::kInvalidArgument);
  CHECK(socket->bind("tcp://localhost:0").ok());
}

TEST_CASE("a router socket's owner is told that a connection has ended") {
  Context context;
  auto router = Socket::router(context, {});
  const auto watch = DisconnectWatch::start(context, *router);
  REQUIRE(watch.ok());
  const std::string endpoint = router->bind("tcp://127.0.0.1:*").value();
  Poller poller;
  poller.add(**watch);
  {
    Socket dealer = make_dealer(context, endpoint);
    REQUIRE(dealer.send_until(message("x"), in_ms(5000)).ok());
    REQUIRE(router->receive_until(in_ms(5000))->has_value());
    CHECK_FALSE((*watch)->take());
  }
  CHECK(poller.wait(in_ms(5000)).value());
  CHECK((*watch)->take());
  CHECK_FALSE((*watch)->take());
}

TEST_CASE("an ipc socket leaves no file behind") {
  const std::string path = "/tmp/brigade-socket-test-" + std::to_string(getpid());
  Context context;
  {
    Listener listener(context, {}, "ipc://" + path);
    CHECK(access(path.c_str(), F_OK) == 0);
    CHECK(reaches(context, listener, {}));
  }
  CHECK(access(path.c_str(), F_OK) != 0);
}

TEST_CASE("keys without the handler that checks them are refused") {
  Context context;
  KeyRing ring;
  CHECK(
      Socket::router(context, {.keys = ring.router, .allowed = {Role::kWorker}}).status().code() ==
      StatusCode::kFailedPrecondition);
}

TEST_CASE("only listed keys of an allowed role get in, and their role is known") {
  Context context;
  KeyRing ring;
  const Keys worker = ring.of(Role::kWorker);
  const Keys service = ring.of(Role::kService);
  Keys stranger = worker;
  stranger.own = generate_key_pair().value();
  Keys misled = worker;
  misled.server_key = generate_key_pair()->public_key;
  REQUIRE(context.allow_peers(ring.router.peers).ok());
  CHECK_FALSE(
      context.allow_peers({{.public_key = "no key", .role = Role::kWorker, .name = "x"}}).ok());
  Listener listener(context, {.keys = ring.router, .allowed = {Role::kWorker, Role::kOperator}},
                    "tcp://0.0.0.0:*");
  listener.endpoint.replace(0, std::string("tcp://0.0.0.0").size(), "tcp://127.0.0.1");

  CHECK_FALSE(reaches(context, listener, {}));
  CHECK_FALSE(reaches(context, listener, {.keys = stranger}));
  CHECK_FALSE(reaches(context, listener, {.keys = service}));
  CHECK_FALSE(reaches(context, listener, {.keys = misled}));

  Socket dealer = make_dealer(context, listener.endpoint, {.keys = worker});
  REQUIRE(dealer.send_until(message("hello"), in_ms(5000)).ok());
  const auto got = listener.socket->receive_until(in_ms(5000));
  REQUIRE(got->has_value());
  CHECK((*got)->role == Role::kWorker);
}

TEST_CASE("the keys that may enter can be named anew while a socket listens") {
  Context context;
  KeyRing ring;
  const Keys worker = ring.of(Role::kWorker);
  REQUIRE(context.allow_peers({}).ok());
  Listener listener(context, {.keys = ring.router, .allowed = {Role::kWorker}},
                    "tcp://127.0.0.1:*");
  CHECK_FALSE(reaches(context, listener, {.keys = worker}));
  REQUIRE(context.allow_peers(ring.router.peers).ok());
  CHECK(reaches(context, listener, {.keys = worker}));
  REQUIRE(context.allow_peers({}).ok());
  CHECK_FALSE(reaches(context, listener, {.keys = worker}));
}

TEST_CASE("a poller tells which of its sockets is readable") {
  Context context;
  Listener a(context);
  Listener b(context);
  Socket dealer = make_dealer(context, b.endpoint);
  REQUIRE(dealer.send_until(message("x"), in_ms(5000)).ok());
  Poller poller;
  const auto ia = poller.add(*a.socket);
  const auto ib = poller.add(*b.socket);
  REQUIRE(poller.wait(in_ms(5000)).value());
  CHECK_FALSE(poller.readable(ia));
  CHECK(poller.readable(ib));
}

}  // namespace brigade::net
