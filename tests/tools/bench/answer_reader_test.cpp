// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/answer_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace brigade::tools {
namespace {

/// The numbers of tokens as the events brought them.
std::vector<std::uint32_t> tokens_of(AnswerReader& reader, const std::string& events) {
  std::vector<std::uint32_t> out;
  reader.push(events, [&](std::uint32_t num_tokens) { out.push_back(num_tokens); });
  return out;
}

std::string event(const std::string& json) {
  return "data: " + json + "\n\n";
}

}  // namespace

TEST_CASE("running usage tells how many tokens an event brings") {
  AnswerReader reader;
  const auto chunk = [](int tokens, const char* finish = "null") {
    return event(R"({"choices":[{"index":0,"text":"x","finish_reason":)" + std::string(finish) +
                 R"(}],"usage":{"prompt_tokens":9,"completion_tokens":)" + std::to_string(tokens) +
                 R"(,"prompt_tokens_details":{"cached_tokens":4}}})");
  };
  // The last event of a choice and the sum at the end bring none.
  const auto tokens = tokens_of(
      reader, chunk(1) + chunk(4) + chunk(4, "\"length\"") +
                  event(R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}})") +
                  event("[DONE]"));
  CHECK(tokens == std::vector<std::uint32_t>{1, 3});
  CHECK(reader.output_tokens() == 4);
  CHECK(reader.prompt_tokens() == 9);
  CHECK(reader.cached_tokens() == 4);
  CHECK(reader.finished());
  CHECK(reader.done());
  CHECK(reader.error().empty());
}

TEST_CASE("without usage token ids count, and without them events with text") {
  AnswerReader reader;
  const auto tokens =
      tokens_of(reader, event(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})") +
                            event(R"({"choices":[{"delta":{"content":"Hi"}}],"usage":null})") +
                            event(R"({"choices":[{"text":"a b","token_ids":[5,6]}]})") +
                            event(R"({"choices":[{"delta":{},"finish_reason":"stop"}]})"));
  CHECK(tokens == std::vector<std::uint32_t>{1, 2});
  CHECK(reader.finished());
  CHECK_FALSE(reader.done());
}

TEST_CASE("errors in a stream are told by their code, and end the counting") {
  const struct {
    const char* events;
    const char* kind;
  } cases[] = {
      {"event: error\ndata: {\"error\":{\"message\":\"m\",\"code\":\"lost\"}}\n\n", "lost"},
      {"data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\",\"code\":null}}\n\n",
       "server_error"},
      {"data: {\"error\":{\"code\":503}}\n\n", "503"},
      {"event: error\ndata: {}\n\n", "error"},
      {"data: {\n\n", "an event is no JSON"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.events);
    AnswerReader reader;
    CHECK(tokens_of(reader, each.events + event(R"({"choices":[{"text":"x"}]})")).empty());
    CHECK(reader.error() == each.kind);
  }
}

TEST_CASE("the kind of an error body is its code, its type, or just error") {
  CHECK(error_kind(R"({"error":{"code":"rate_limit_exceeded","type":"t"}})") ==
        "rate_limit_exceeded");
  CHECK(error_kind(R"({"error":{"type":"server_error","code":null}})") == "server_error");
  CHECK(error_kind("<html>") == "error");
  CHECK(error_kind(R"({"error":"text"})") == "error");
}

}  // namespace brigade::tools
