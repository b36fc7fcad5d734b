// SPDX-License-Identifier: Apache-2.0
// /v1/chat/completions from the socket to the router and back.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "common/base/strings.h"
#include "router/api/http/server.h"
#include "tests/support/fake_service.h"
#include "tests/support/fake_tokenizer.h"
#include "tests/support/http_client.h"

using namespace brigade;
using namespace brigade::router;
using namespace brigade::testing;

namespace {

struct Door {
  FakeService service;
  std::unique_ptr<HttpServer> server = HttpServer::start({}, service).value();

  HttpAnswer chat(std::string_view fields) {
    return ask(
        server->address(),
        post("/v1/chat/completions",
             str_cat(R"({"messages":[{"role":"user","content":"<|im_end|>"}])", fields, "}")));
  }
};

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  INFO(part);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a chat answer has the shape that clients read") {
  Door door;
  const HttpAnswer answer = door.chat("");
  CHECK(answer.status == 200);
  CHECK(answer.body.starts_with("{\"id\":\"chatcmpl-"));
  CHECK(has(answer.body, R"("object":"chat.completion")"));
  CHECK(has(
      answer.body,
      R"("choices":[{"index":0,"message":{"role":"assistant","content":"Hello!","refusal":null},)"
      R"("logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":)"));
  const Request request = door.service.submitted().at(0);
  CHECK_FALSE(request.params.max_tokens.has_value());
  // The template's special tokens count, the user's do not.
  CHECK(std::count(request.prompt.begin(), request.prompt.end(), FakeTokenizer::kEnd) == 1);
  CHECK(std::count(request.prompt.begin(), request.prompt.end(), FakeTokenizer::kStart) == 2);
}

TEST_CASE("the role comes with the first content and the finish reason with the last") {
  Door door;
  const HttpAnswer answer = door.chat(R"(,"stream":true,"max_tokens":2)");
  REQUIRE(answer.chunks.size() == 3);
  CHECK(has(answer.chunks[0], R"("object":"chat.completion.chunk")"));
  CHECK(has(answer.chunks[0],
            R"("choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"logprobs":null,)"
            R"("finish_reason":null,"stop_reason":null}]})"));
  CHECK(has(answer.chunks[1],
            R"("delta":{"content":"lo"},"logprobs":null,"finish_reason":"length")"));
  CHECK(answer.chunks[2] == "data: [DONE]\n\n");
}

TEST_CASE("an end without text is an empty delta, and an empty answer has a role") {
  Door door;
  HttpAnswer answer = door.chat(R"(,"stream":true)");
  REQUIRE(answer.chunks.size() == 5);
  CHECK(has(answer.chunks[3], R"("delta":{},"logprobs":null,"finish_reason":"stop")"));
  door.service.set_script([](const Request& request) { return say(request, {}); });
  answer = door.chat(R"(,"stream":true)");
  REQUIRE(answer.chunks.size() == 2);
  CHECK(has(answer.chunks[0],
            R"("delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":"stop")"));
}

TEST_CASE("outputs that say nothing make no event, unless their tokens are asked for") {
  Door door;
  door.service.set_script([](const Request& request) {
    auto outputs = say(request, {"a", "b", "c"});
    outputs[0].text.clear();  // held back by a stop string
    outputs[1].text = "ab";
    return outputs;
  });
  CHECK(door.chat(R"(,"stream":true,"max_tokens":3)").chunks.size() == 3);
  const HttpAnswer scored = door.chat(R"(,"stream":true,"max_tokens":3,"logprobs":true)");
  REQUIRE(scored.chunks.size() == 4);
  CHECK(has(scored.chunks[0], R"("content":""},"logprobs":{"content":[{"token":"a")"));
}

TEST_CASE("log-probabilities of a chat have bytes and the best") {
  Door door;
  door.service.set_script([](const Request& request) { return say(request, {"\xC3"}); });
  const HttpAnswer answer =
      door.chat(R"(,"logprobs":true,"top_logprobs":2,"max_completion_tokens":1)");
  CHECK(has(answer.body,
            "\"logprobs\":{\"content\":[{\"token\":\"\uFFFD\",\"logprob\":-0.5,\"bytes\":[195],"
            "\"top_logprobs\":[{\"token\":\"\uFFFD\",\"logprob\":-0.5,\"bytes\":[195]},"
            "{\"token\":\"b\",\"logprob\":-1.5,\"bytes\":[98]}]}],\"refusal\":null}"));
}

TEST_CASE("n choices are told apart in one stream") {
  Door door;
  const HttpAnswer answer = door.chat(R"(,"stream":true,"n":3,"max_tokens":1,"seed":5)");
  CHECK(answer.chunks.size() == 4);
  for (int i = 0; i < 3; ++i) {
    CHECK(has(answer.body, str_cat("\"index\":", i, ",\"delta\":{\"role\"")));
  }
  CHECK(door.service.submitted().at(2).params.seed == 7U);
}

TEST_CASE("token ids of a chat stand where vLLM puts them") {
  Door door;
  const HttpAnswer whole = door.chat(R"(,"return_token_ids":true,"max_tokens":1)");
  CHECK(has(whole.body, R"("token_ids":[72]}],"prompt_token_ids":[257,)"));
  const HttpAnswer stream = door.chat(R"(,"return_token_ids":true,"max_tokens":2,"stream":true)");
  CHECK(has(stream.chunks[0], R"("prompt_token_ids":[257,)"));
  CHECK_FALSE(has(stream.chunks[1], "prompt_token_ids"));
  CHECK(has(stream.chunks[1], R"("token_ids":[108])"));
}

TEST_CASE("a chat longer than the context is refused") {
  Door door;
  const HttpAnswer answer =
      ask(door.server->address(),
          post("/v1/chat/completions", str_cat(R"({"messages":[{"role":"user","content":")",
                                               std::string(600, 'a'), R"("}]})")));
  CHECK(answer.status == 400);
  CHECK(has(answer.body, "context_length_exceeded"));
  CHECK(has(answer.body, R"("param":"messages")"));
}

TEST_CASE("a chat's prompt_logprobs stand beside its choices") {
  Door door;
  const HttpAnswer answer = door.chat(R"(,"max_tokens":1,"prompt_logprobs":0)");
  CHECK(answer.status == 200);
  CHECK(has(answer.body, R"(}],"prompt_logprobs":[null,{")"));
}

TEST_CASE("a final message is continued where its text ends") {
  Door door;
  const HttpAnswer answer = ask(
      door.server->address(),
      post(
          "/v1/chat/completions",
          R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"The answer "}],
               "continue_final_message":true,"max_tokens":1})"));
  CHECK(answer.status == 200);
  const std::vector<std::int32_t> prompt = door.service.submitted().at(0).prompt;
  const std::string end = "The answer ";
  REQUIRE(prompt.size() > end.size());
  CHECK(std::equal(end.rbegin(), end.rend(), prompt.rbegin()));
}
