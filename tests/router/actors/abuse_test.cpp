// SPDX-License-Identifier: Apache-2.0
#include "common/base/random.h"
#include "tests/router/actors/support/harness.h"

namespace brigade::router::testing {
namespace {

net::Socket make_dealer(Harness& harness, const std::string& endpoint,
                        net::SocketOptions options = {.max_message_bytes = wire::kMaxStepBytes}) {
  auto socket = net::Socket::dealer(harness.context, std::move(options));
  REQUIRE(socket.ok());
  REQUIRE(socket->connect(endpoint).ok());
  return std::move(socket).value();
}

void send(net::Socket& socket, std::vector<std::string> parts) {
  std::vector<net::Frame> frames;
  for (const std::string& part : parts)
    frames.emplace_back(std::string_view(part));
  REQUIRE(socket.send_until(std::move(frames), in_ms(5000)).ok());
}

/// Past signs of life.
wire::FromRouter next_answer(net::Socket& socket) {
  while (true) {
    auto received = socket.receive_until(in_ms(5000));
    REQUIRE(received.ok());
    REQUIRE(received->has_value());
    auto message = wire::decode_from_router((*received)->frames[0].bytes());
    REQUIRE_MESSAGE(message.ok(), message.status().message());
    if (!std::holds_alternative<wire::KeepAlive>(*message)) return std::move(message).value();
  }
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_still_serves(Harness& harness) {
  const auto client = harness.connect();
  std::string text;
  const auto finished = client->generate(
      letters(5),
      [&](const wire::Chunk& chunk) {
        text += chunk.text;
        return true;
      },
      in_ms(10'000));
  REQUIRE_MESSAGE(finished.ok(), finished.status().message());
  CHECK(text == expected_letters(5, 5));
}

}  // namespace

TEST_CASE("garbage, cut and many-framed messages on the clients' socket get one error each") {
  Harness harness;
  const auto worker = harness.add_worker();
  net::Socket socket = make_dealer(harness, harness.door->endpoint());
  wire::Encoder encoder;
  const std::string valid = text_of(encoder.encode(wire::ToRouter(letters(5))));
  std::vector<std::string> bad = {"", "x", std::string(1000, '\xff')};
  for (std::size_t size = 0; size + 8 < valid.size(); size += 7)
    bad.push_back(valid.substr(0, size));
  for (const std::string& message : bad) {
    send(socket, {message});
    const auto answer = next_answer(socket);
    REQUIRE(std::holds_alternative<wire::Refused>(answer));
    CHECK(std::get<wire::Refused>(answer).request == 0);
    CHECK(std::get<wire::Refused>(answer).status.code() == StatusCode::kInvalidArgument);
  }
  send(socket, {"a", "b", "c"});
  check_still_serves(harness);
}

TEST_CASE("a request number in flight cannot be used twice") {
  Harness harness;
  const auto worker = harness.add_worker(std::chrono::milliseconds(20));
  net::Socket socket = make_dealer(harness, harness.door->endpoint());
  wire::Encoder encoder;
  wire::Generate request = letters(200);
  request.request = 7;
  const std::string bytes = text_of(encoder.encode(wire::ToRouter(request)));
  send(socket, {bytes});
  CHECK(std::holds_alternative<wire::Accepted>(next_answer(socket)));
  send(socket, {bytes});
  while (true) {
    const auto answer = next_answer(socket);
    if (!std::holds_alternative<wire::Refused>(answer)) continue;
    CHECK(std::get<wire::Refused>(answer).status.message().find("in flight") != std::string::npos);
    break;
  }
}

TEST_CASE("a client has a bounded number of requests in flight") {
  Harness harness({.max_requests_per_client = 3});
  const auto worker = harness.add_worker(std::chrono::milliseconds(20));
  const auto client = harness.connect();
  std::vector<client::Stream> streams;
  for (int i = 0; i < 4; ++i) {
    auto stream = client->generate(letters(300));
    REQUIRE(stream.ok());
    streams.push_back(std::move(stream).value());
  }
  CHECK(streams[0].next(in_ms(10'000)).ok());
  CHECK(streams[3].next(in_ms(10'000)).status().code() == StatusCode::kResourceExhausted);
  CHECK(streams[3].retry_after_s() > 0);
}

TEST_CASE("a client that does not read has its request ended and is told when it reads again") {
  // inproc: no kernel buffers between the two queues.
  Harness harness({.endpoint = "inproc://clients",
                   .max_queued_per_client = 10,
                   .keep_alive_interval = std::chrono::milliseconds(50)});
  const auto worker = harness.add_worker();
  net::Socket socket = make_dealer(harness, "inproc://clients", {.max_queued = 10});
  wire::Encoder encoder;
  wire::Generate request = letters(400);
  request.request = 7;
  send(socket, {text_of(encoder.encode(wire::ToRouter(request)))});
  REQUIRE(eventually([&] {
    const RouterStatus status = harness.status();
    return status.accepted == 1 && status.in_flight == 0;
  }));
  CHECK(harness.status().cancelled == 1);
  while (true) {
    const auto answer = next_answer(socket);
    if (!std::holds_alternative<wire::Refused>(answer)) continue;
    CHECK(std::get<wire::Refused>(answer).request == 7);
    CHECK(std::get<wire::Refused>(answer).status.code() == StatusCode::kResourceExhausted);
    break;
  }
}

TEST_CASE("strangers on the workers' socket are told to say Hello, and hurt no one") {
  Harness harness;
  const auto worker = harness.add_worker();
  const std::string endpoint = harness.service->worker_endpoints().front();
  wire::Encoder encoder;
  const std::string first(8, '\0');
  const std::string hello = text_of(encoder.encode(wire::FromWorker(wire::Hello{})));
  const std::string beat = text_of(encoder.encode(wire::FromWorker(wire::Heartbeat{})));
  const std::vector<std::vector<std::string>> wrong = {{"x"},
                                                       {first, beat},
                                                       {first, ""},
                                                       {first, "junk"},
                                                       {"1234567", hello},
                                                       {std::string(8, '\1'), hello},
                                                       {first, hello.substr(0, hello.size() / 2)}};
  for (const auto& parts : wrong) {
    net::Socket socket = make_dealer(harness, endpoint);
    send(socket, parts);
    const auto answer = socket.receive_until(in_ms(5000));
    REQUIRE(answer.ok());
    REQUIRE(answer->has_value());
    REQUIRE((*answer)->frames.size() == 2);
    CHECK((*answer)->frames[0].text() == std::string(8, '\xff'));
    CHECK(std::holds_alternative<wire::Abort>(
        wire::decode_to_worker((*answer)->frames[1].bytes()).value()));
  }
  check_still_serves(harness);
}

TEST_CASE("a worker that sends garbage is given up, and may come back") {
  Harness harness;
  auto worker = harness.add_worker();
  worker->send_garbage();
  CHECK(eventually([&] { return harness.service->ready_replicas() == 0; }));
  CHECK(eventually([&] { return worker->sequence_broken(); }));
  worker = harness.add_worker({}, 2);
  check_still_serves(harness);
}

TEST_CASE("with keys, each socket lets in its own roles, and draining needs an operator") {
  net::Keys router = {.role = net::Role::kRouter, .own = net::generate_key_pair().value()};
  const auto make_peer = [&](net::Role role) {
    net::Keys keys = {
        .role = role, .own = net::generate_key_pair().value(), .server_key = router.own.public_key};
    router.peers.push_back({keys.own.public_key, role, "peer"});
    return keys;
  };
  const net::Keys worker_keys = make_peer(net::Role::kWorker);
  const net::Keys service_keys = make_peer(net::Role::kService);
  const net::Keys operator_keys = make_peer(net::Role::kOperator);
  Harness harness({}, router);
  const ScriptedWorker worker(
      harness.context,
      {.endpoint = harness.service->worker_endpoints().front(), .keys = worker_keys});
  CHECK(eventually([&] { return harness.service->ready_replicas() == 1; }));
  const auto connect = [&](const std::optional<net::Keys>& keys) {
    return client::Client::connect({.endpoint = harness.door->endpoint(),
                                    .keys = keys,
                                    .connect_timeout = std::chrono::milliseconds(2000)});
  };
  CHECK_FALSE(client::Client::connect({.endpoint = harness.door->endpoint(),
                                       .connect_timeout = std::chrono::milliseconds(300)})
                  .ok());
  CHECK_FALSE(client::Client::connect({.endpoint = harness.door->endpoint(),
                                       .keys = worker_keys,
                                       .connect_timeout = std::chrono::milliseconds(300)})
                  .ok());
  const auto service_client = connect(service_keys);
  REQUIRE_MESSAGE(service_client.ok(), service_client.status().message());
  CHECK((*service_client)->drain(0).code() == StatusCode::kPermissionDenied);
  const auto operator_client = connect(operator_keys);
  REQUIRE_MESSAGE(operator_client.ok(), operator_client.status().message());
  CHECK((*operator_client)->drain(0).ok());
}

}  // namespace brigade::router::testing
