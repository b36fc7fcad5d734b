// SPDX-License-Identifier: Apache-2.0
// How an answer ends when something goes wrong: on the client's side, on the router's, or on ours.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "common/base/strings.h"
#include "router/api/http/generation.h"
#include "router/api/http/server.h"
#include "tests/support/fake_service.h"
#include "tests/support/http_client.h"

using namespace brigade;
using namespace brigade::router;
using namespace brigade::testing;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

struct Door {
  explicit Door(HttpOptions options = {})
      : server(HttpServer::start(std::move(options), service).value()) {}
  FakeService service;
  std::unique_ptr<HttpServer> server;
};

/// More outputs than any test waits for.
std::vector<Output> endless(const Request& request, const std::string& piece) {
  return say(request, std::vector<std::string>(100'000, piece));
}

const std::string kStream =
    post("/v1/completions", R"({"prompt":"a","max_tokens":500,"n":2,"stream":true})");
const std::string kWhole = post("/v1/completions", R"({"prompt":["a","b"],"max_tokens":500})");

}  // namespace

TEST_CASE("a client that leaves a stream cancels all its requests at once") {
  for (const int way : {0, 1, 2}) {
    CAPTURE(way);
    Door door;
    door.service.set_gap(milliseconds(2));
    door.service.set_script([](const Request& request) { return endless(request, "x"); });
    HttpClient client(door.server->address());
    client.send(kStream);
    REQUIRE(client.receive_until("data: "));
    if (way == 0) client.close();
    if (way == 1) client.reset();
    if (way == 2) client.half_close();
    CHECK(door.service.wait_for_cancelled(2));
    if (way == 2) CHECK(client.closed());
  }
}

TEST_CASE("a client that leaves before its answer cancels all its requests at once") {
  for (const int way : {0, 1, 2}) {
    CAPTURE(way);
    Door door;
    door.service.hold(true);
    HttpClient client(door.server->address());
    client.send(kWhole);
    REQUIRE(door.service.wait_for_submitted(2));
    if (way == 0) client.close();
    if (way == 1) client.reset();
    if (way == 2) client.half_close();
    CHECK(door.service.wait_for_cancelled(2));
    CHECK(door.service.num_outputs() == 0);
    door.service.hold(false);
  }
}

TEST_CASE("a client that finishes reading cancels nothing") {
  Door door;
  HttpClient client(door.server->address());
  client.send(kStream);
  CHECK(client.receive().complete);
  client.send(kWhole);
  CHECK(client.receive().complete);
  client.close();
  CHECK(ask(door.server->address(), get("/health")).status == 200);
  CHECK(door.service.num_cancelled() == 0);
}

TEST_CASE("an error in a stream is one event that all clients notice, then the end") {
  Door door;
  door.service.set_script([](const Request& request) {
    auto outputs = say(request, {"ab", "cd"});
    outputs.pop_back();
    outputs.push_back(refuse(unavailable("the replica was lost"), 3).front());
    return outputs;
  });
  HttpClient client(door.server->address());
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  const HttpAnswer answer = client.receive();
  CHECK(answer.status == 200);
  CHECK(answer.complete);
  REQUIRE(answer.chunks.size() == 3);
  CHECK(answer.chunks.back() ==
        "event: error\ndata: {\"error\":{\"message\":\"the replica was lost\","
        "\"type\":\"service_unavailable_error\",\"param\":null,\"code\":null}}\n\n");
  CHECK(client.closed());
}

TEST_CASE("one failed choice ends the answer and cancels the others") {
  Door door;
  door.service.set_gap(milliseconds(1));
  door.service.set_script([](const Request& request) {
    return request.id % 2 == 0 ? refuse(internal_error("broken")) : endless(request, "x");
  });
  CHECK(ask(door.server->address(), kWhole).status == 500);
  CHECK(door.service.wait_for_cancelled(1));
}

TEST_CASE("a cancellation that no client asked for is an error, not an end") {
  Door door;
  door.service.set_script([](const Request& request) {
    auto outputs = say(request, {"ab"});
    outputs.back().finish = wire::FinishReason::kCancelled;
    return outputs;
  });
  const HttpAnswer answer =
      ask(door.server->address(), post("/v1/completions", R"({"prompt":"a","stream":true})"));
  CHECK(answer.chunks.back().starts_with("event: error\n"));
}

TEST_CASE("a client that does not read is bounded, cancelled and cut") {
  Door door({.max_stream_bytes = 64 << 10, .send_buffer_bytes = 16 << 10});
  door.service.set_script(
      [](const Request& request) { return endless(request, std::string(1000, 'x')); });
  HttpClient slow(door.server->address(), /*receive_buffer=*/4096);
  slow.send(post("/v1/completions", R"({"prompt":"a","max_tokens":500,"stream":true})"));
  CHECK(door.service.wait_for_cancelled(1));
  const HttpAnswer answer = slow.receive();
  CHECK_FALSE(answer.complete);
  CHECK(answer.body.find("[DONE]") == std::string::npos);
}

TEST_CASE("a client that stops reading is cut when nothing moves, with a little unread too") {
  Door door({.send_buffer_bytes = 4096, .write_timeout = milliseconds(100)});
  // 2,000 events of some 1.2 KB: less than the bound would be unread, were it not for the stall.
  door.service.set_gap(milliseconds(1));
  door.service.set_script(
      [](const Request& request) { return endless(request, std::string(1000, 'x')); });
  HttpClient slow(door.server->address(), /*receive_buffer=*/4096);
  slow.send(post("/v1/completions", R"({"prompt":"a","max_tokens":500,"stream":true})"));
  CHECK(door.service.wait_for_cancelled(1));
  CHECK_FALSE(slow.receive().complete);
}

TEST_CASE("a client that lags within the bound gets every byte in order") {
  Door door({.max_stream_bytes = 8 << 20, .send_buffer_bytes = 8 << 10});
  constexpr std::size_t kNumPieces = 400;
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < kNumPieces; ++i)
    pieces.push_back(str_cat(i, std::string(10'000, 'x')));
  door.service.set_script([&](const Request& request) { return say(request, pieces); });
  HttpClient client(door.server->address());
  client.send(post("/v1/completions", R"({"prompt":"a","max_tokens":400,"stream":true})"));
  const auto deadline = Clock::now() + seconds(5);
  while (door.service.num_outputs() < kNumPieces && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(1));
  const HttpAnswer answer = client.receive();
  REQUIRE(answer.complete);
  REQUIRE(answer.chunks.size() == kNumPieces + 1);
  for (std::size_t i = 0; i < kNumPieces; ++i)
    CHECK(answer.chunks[i].find(str_cat("\"text\":\"", pieces[i], "\"")) != std::string::npos);
}

TEST_CASE("one client that does not read harms no other") {
  Door door({.max_stream_bytes = 1 << 20, .send_buffer_bytes = 4096});
  door.service.set_script(
      [](const Request& request) { return endless(request, std::string(100, 'x')); });
  HttpClient slow(door.server->address(), /*receive_buffer=*/4096);
  slow.send(post("/v1/completions", R"({"prompt":"a","max_tokens":500,"stream":true})"));
  REQUIRE(slow.receive_until("data: "));
  door.service.set_script([](const Request& request) { return say(request, {"x"}); });
  CHECK(ask(door.server->address(), kStream).complete);
}

TEST_CASE("a router that never answers is not waited for without end") {
  Door door({.write_timeout = milliseconds(20), .work_timeout = milliseconds(60)});
  door.service.hold(true);
  HttpClient client(door.server->address());
  client.send(kWhole);
  CHECK(door.service.wait_for_cancelled(2));
  CHECK(client.closed());
  door.service.hold(false);
}

TEST_CASE("stopping lets answers end that end in time") {
  Door door;
  door.service.set_gap(milliseconds(20));
  HttpClient streaming(door.server->address());
  HttpClient idle(door.server->address());
  idle.send(get("/health"));
  CHECK(idle.receive().status == 200);
  streaming.send(kStream);
  REQUIRE(streaming.receive_until("data: "));
  const TimePoint begin = Clock::now();
  door.server->stop(begin + seconds(5));
  CHECK(Clock::now() < begin + seconds(4));
  const HttpAnswer answer = streaming.receive();
  CHECK(answer.complete);
  CHECK(answer.chunks.back() == "data: [DONE]\n\n");
  CHECK(idle.closed());
}

TEST_CASE("what is in work at the deadline of a stop ends with an error") {
  Door door;
  door.service.set_gap(milliseconds(2));
  door.service.set_script([](const Request& request) { return endless(request, "x"); });
  HttpClient streaming(door.server->address());
  HttpClient whole(door.server->address());
  HttpClient half(door.server->address());
  half.send("GET /health HT");
  streaming.send(kStream);
  REQUIRE(streaming.receive_until("data: "));
  whole.send(kWhole);
  REQUIRE(door.service.wait_for_submitted(4));
  const TimePoint begin = Clock::now();
  door.server->stop(begin + milliseconds(50));
  CHECK(Clock::now() < begin + seconds(1));
  CHECK(door.service.wait_for_cancelled(4));
  CHECK(whole.receive().status == 503);
  CHECK(streaming.receive().chunks.back().starts_with("event: error\n"));
  CHECK(half.closed());
}

TEST_CASE("a server that goes away with requests in work leaves nothing behind") {
  Door door;
  door.service.hold(true);
  HttpClient client(door.server->address());
  client.send(kWhole);
  REQUIRE(door.service.wait_for_submitted(2));
  door.server.reset();
  CHECK(door.service.wait_for_cancelled(2));
  door.service.hold(false);  // late outputs have nowhere to go
}
