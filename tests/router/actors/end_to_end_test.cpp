// SPDX-License-Identifier: Apache-2.0
#include "tests/router/actors/support/harness.h"

namespace brigade::router::testing {
namespace {

Result<wire::Finished> collect(client::Client& client, wire::Generate request, std::string& text) {
  return client.generate(
      std::move(request),
      [&text](const wire::Chunk& chunk) {
        text += chunk.text;
        return true;
      },
      in_ms(20'000));
}

StatusCode refusal(client::Client& client, wire::Generate request) {
  std::string text;
  const auto finished = collect(client, std::move(request), text);
  return finished.status().code();
}

}  // namespace

TEST_CASE("a client streams text through router and worker") {
  Harness harness;
  const auto worker = harness.add_worker();
  const auto client = harness.connect();
  std::string text;
  const auto finished = collect(*client, letters(40), text);
  REQUIRE_MESSAGE(finished.ok(), finished.status().message());
  CHECK(text == expected_letters(5, 40));
  CHECK(finished->reason == wire::FinishReason::kLength);
  CHECK(finished->prompt_tokens == 5);
  CHECK(finished->completion_tokens == 40);
}

TEST_CASE("several streams of one client are read in any order") {
  Harness harness;
  const auto worker = harness.add_worker();
  const auto client = harness.connect();
  std::vector<client::Stream> streams;
  for (std::uint32_t i = 0; i < 8; ++i) {
    auto stream = client->generate(letters(10 + i));
    REQUIRE(stream.ok());
    streams.push_back(std::move(stream).value());
  }
  for (std::uint32_t i = 8; i-- > 0;) {
    std::string text;
    while (true) {
      const auto chunk = streams[i].next(in_ms(20'000));
      REQUIRE_MESSAGE(chunk.ok(), chunk.status().message());
      if (!*chunk) break;
      text += (*chunk)->text;
    }
    CHECK(text == expected_letters(5, 10 + i));
  }
}

TEST_CASE("a cancelled stream ends soon and frees its blocks") {
  Harness harness;
  const auto worker = harness.add_worker(std::chrono::milliseconds(2));
  const auto client = harness.connect();
  auto stream = client->generate(letters(400));
  REQUIRE(stream.ok());
  REQUIRE(stream->next(in_ms(10'000)).ok());
  stream->cancel();
  std::size_t chunks = 0;
  while (true) {
    const auto chunk = stream->next(in_ms(10'000));
    REQUIRE_MESSAGE(chunk.ok(), chunk.status().message());
    if (!*chunk) break;
    ++chunks;
  }
  CHECK(chunks < 390);
  CHECK(stream->finished()->reason == wire::FinishReason::kCancelled);
  CHECK(eventually([&] { return harness.status().replicas[0].kv_used == 0; }));
}

TEST_CASE("a client that vanishes has its requests cancelled") {
  Harness harness;
  const auto worker = harness.add_worker(std::chrono::milliseconds(5));
  {
    auto socket = net::Socket::dealer(harness.context, {});
    REQUIRE(socket.ok());
    REQUIRE(socket->connect(harness.door->endpoint()).ok());
    wire::Encoder encoder;
    wire::Generate request = letters(450);
    request.request = 1;
    std::vector<net::Frame> frames;
    frames.emplace_back(encoder.encode(wire::ToRouter(request)));
    REQUIRE(socket->send_until(std::move(frames), in_ms(5000)).ok());
    REQUIRE(socket->receive_until(in_ms(5000))->has_value());
  }
  CHECK(eventually([&] { return harness.status().in_flight == 0; }));
  CHECK(harness.status().cancelled == 1);
  CHECK(eventually([&] { return harness.status().replicas[0].kv_used == 0; }));
}

TEST_CASE("wrong requests are refused with a reason, each alone") {
  Harness harness;
  const auto worker = harness.add_worker();
  const auto client = harness.connect();
  wire::Generate unknown = letters(5);
  unknown.model = "no such model";
  CHECK(refusal(*client, unknown) == StatusCode::kNotFound);
  wire::Generate bad_ids = letters(5);
  bad_ids.prompt = wire::TokenPrompt{{1, 1000000}};
  CHECK(refusal(*client, bad_ids) == StatusCode::kInvalidArgument);
  wire::Generate not_text = letters(5);
  not_text.prompt = wire::TextPrompt{.text = "\xff\xfe"};
  CHECK(refusal(*client, not_text) == StatusCode::kInvalidArgument);
  wire::Generate too_long = letters(5);
  too_long.prompt = wire::TextPrompt{.text = std::string(5000, 'a')};
  CHECK(refusal(*client, too_long) == StatusCode::kInvalidArgument);
  wire::Generate no_chat = letters(5);
  no_chat.prompt = wire::ChatPrompt{{{"user", "hello"}}};
  CHECK(refusal(*client, no_chat) == StatusCode::kInvalidArgument);
  std::string text;
  CHECK(collect(*client, letters(5), text).ok());
  CHECK(text == expected_letters(5, 5));
}

TEST_CASE("models, status and drain answer") {
  Harness harness;
  const auto worker = harness.add_worker();
  const auto client = harness.connect();
  const auto models = client->models();
  REQUIRE(models.ok());
  REQUIRE(models->size() == 1);
  CHECK(models->front().name == "fake");
  CHECK(models->front().max_context == 512);
  const auto status = client->status();
  REQUIRE(status.ok());
  CHECK(status->find("\"replicas\":[{\"id\":0") != std::string::npos);
  CHECK(client->drain(99).code() == StatusCode::kNotFound);
  CHECK(client->drain(0).ok());
  CHECK(eventually([&] { return worker->released(); }));
}

TEST_CASE("a worker that vanishes is noticed, and its request goes on elsewhere") {
  Harness harness;
  auto first = harness.add_worker(std::chrono::milliseconds(5), 1);
  const auto client = harness.connect();
  auto stream = client->generate(letters(100));
  REQUIRE(stream.ok());
  auto chunk = stream->next(in_ms(10'000));
  REQUIRE(chunk.ok());
  std::string text = (*chunk)->text;
  const auto second = harness.add_worker(std::chrono::milliseconds(1), 2);
  first.reset();
  CHECK(eventually([&] { return harness.service->ready_replicas() == 1; }));
  while (true) {
    chunk = stream->next(in_ms(10'000));
    REQUIRE_MESSAGE(chunk.ok(), chunk.status().message());
    if (!*chunk) break;
    text += (*chunk)->text;
  }
  CHECK(text == expected_letters(5, 100));
}

TEST_CASE("a stopping router ends requests after its grace and releases its workers") {
  Harness harness;
  const auto worker = harness.add_worker(std::chrono::milliseconds(5));
  const auto client = harness.connect();
  auto stream = client->generate(letters(450));
  REQUIRE(stream.ok());
  REQUIRE(stream->next(in_ms(10'000)).ok());
  std::thread stopper([&] { harness.service->stop(in_ms(50)); });
  Status ended;
  while (ended.ok() && !stream->finished())
    ended = stream->next(in_ms(10'000)).status();
  stopper.join();
  CHECK((stream->finished() || !ended.ok()));
  CHECK(eventually([&] { return worker->released(); }));
  CHECK(refusal(*client, letters(5)) == StatusCode::kUnavailable);
}

}  // namespace brigade::router::testing
