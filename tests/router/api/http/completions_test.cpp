// SPDX-License-Identifier: Apache-2.0
// /v1/completions from the socket to the router and back.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "common/base/strings.h"
#include "router/api/http/json.h"
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

  HttpAnswer complete(std::string_view body) {
    return ask(server->address(), post("/v1/completions", body));
  }
};

JsonValue json_of(std::string_view text) {
  INFO(text);
  auto parsed = parse_json(text);
  REQUIRE(parsed.ok());
  return std::move(parsed).value();
}

const JsonValue& at(const JsonValue& value, std::string_view key) {
  const JsonValue* found = value.find(key);
  INFO(key);
  REQUIRE(found != nullptr);
  return *found;
}

const JsonValue& choice(const JsonValue& answer, std::size_t i = 0) {
  return at(answer, "choices").as_array()->at(i);
}

std::string text_of(const JsonValue& value) {
  return *value.as_string();
}
std::int64_t int_of(const JsonValue& value) {
  return std::get<std::int64_t>(value.data);
}
std::size_t size_of(const JsonValue& value) {
  return value.as_array()->size();
}

/// What stands after `data: ` in each event of a stream, without [DONE].
std::vector<JsonValue> events_of(const HttpAnswer& answer) {
  std::vector<JsonValue> events;
  for (const std::string& chunk : answer.chunks) {
    CHECK(chunk.starts_with("data: "));
    CHECK(chunk.ends_with("\n\n"));
    CHECK(std::count(chunk.begin(), chunk.end(), '\n') == 2);
    CHECK(chunk.find('\r') == std::string::npos);
    if (chunk != "data: [DONE]\n\n") events.push_back(json_of(chunk.substr(6, chunk.size() - 8)));
  }
  REQUIRE_FALSE(answer.chunks.empty());
  CHECK(answer.chunks.back() == "data: [DONE]\n\n");
  return events;
}

}  // namespace

TEST_CASE("a completion has the shape that clients read") {
  Door door;
  const HttpAnswer answer =
      door.complete(R"({"model":"fake","prompt":"abc","max_tokens":8,"temperature":0})");
  CHECK(answer.status == 200);
  CHECK(answer.reason == "OK");
  CHECK(answer.headers.at("content-type") == "application/json");
  const JsonValue body = json_of(answer.body);
  CHECK(text_of(at(body, "id")).starts_with("cmpl-"));
  CHECK(text_of(at(body, "object")) == "text_completion");
  CHECK(int_of(at(body, "created")) > 1'700'000'000);
  CHECK(text_of(at(body, "model")) == "fake");
  CHECK(text_of(at(body, "system_fingerprint")) == "fp_0123456789ab");
  REQUIRE(size_of(at(body, "choices")) == 1);
  CHECK(int_of(at(choice(body), "index")) == 0);
  CHECK(text_of(at(choice(body), "text")) == "Hello!");
  CHECK(text_of(at(choice(body), "finish_reason")) == "stop");
  CHECK(at(choice(body), "logprobs").is_null());
  CHECK(int_of(at(at(body, "usage"), "prompt_tokens")) == 3);
  CHECK(int_of(at(at(body, "usage"), "completion_tokens")) == 4);
  CHECK(int_of(at(at(body, "usage"), "total_tokens")) == 7);
  const Request request = door.service.submitted().at(0);
  CHECK(request.model == "fake");
  CHECK(request.prompt == std::vector<std::int32_t>{'a', 'b', 'c'});
  CHECK(request.params.temperature == 0.0F);
}

TEST_CASE("a completion without max_tokens has 16, or what the context leaves") {
  Door door;
  CHECK(door.complete(R"({"prompt":"a"})").status == 200);
  CHECK(door.complete(str_cat("{\"prompt\":\"", std::string(505, 'a'), "\"}")).status == 200);
  CHECK(door.service.submitted().at(0).params.max_tokens == 16U);
  CHECK(door.service.submitted().at(1).params.max_tokens == 7U);
}

TEST_CASE("a stream is one event a chunk, byte for byte") {
  Door door;
  const HttpAnswer answer = door.complete(R"({"prompt":"a","max_tokens":2,"stream":true})");
  CHECK(answer.status == 200);
  CHECK(answer.headers.at("content-type").starts_with("text/event-stream"));
  CHECK(answer.headers.at("transfer-encoding") == "chunked");
  CHECK(answer.complete);
  const auto events = events_of(answer);
  REQUIRE(events.size() == 2);
  const std::string opening = str_cat(
      "data: {\"id\":\"", text_of(at(events[0], "id")), "\",\"object\":\"text_completion\",",
      "\"created\":", int_of(at(events[0], "created")), ",\"model\":\"fake\",",
      "\"system_fingerprint\":\"fp_0123456789ab\",\"choices\":[{\"index\":0,\"text\":");
  CHECK(answer.chunks[0] == opening + "\"Hel\",\"logprobs\":null,\"finish_reason\":null," +
                                "\"stop_reason\":null}]}\n\n");
  CHECK(answer.chunks[1] == opening + "\"lo\",\"logprobs\":null,\"finish_reason\":\"length\"," +
                                "\"stop_reason\":null}]}\n\n");
  CHECK(answer.chunks[2] == "data: [DONE]\n\n");
}

TEST_CASE("usage comes in an event without choices, and in every event when asked for") {
  Door door;
  auto events = events_of(door.complete(
      R"({"prompt":"ab","max_tokens":2,"stream":true,"stream_options":{"include_usage":true}})"));
  REQUIRE(events.size() == 3);
  CHECK(at(events[0], "usage").is_null());
  CHECK(at(events[1], "usage").is_null());
  CHECK(size_of(at(events[2], "choices")) == 0);
  CHECK(int_of(at(at(events[2], "usage"), "completion_tokens")) == 2);
  events = events_of(door.complete(
      R"({"prompt":"ab","max_tokens":2,"stream":true,
          "stream_options":{"include_usage":true,"continuous_usage_stats":true}})"));
  REQUIRE(events.size() == 3);
  CHECK(int_of(at(at(events[0], "usage"), "prompt_tokens")) == 2);
  CHECK(int_of(at(at(events[0], "usage"), "completion_tokens")) == 1);
  CHECK(int_of(at(at(events[1], "usage"), "completion_tokens")) == 2);
}

TEST_CASE("log-probabilities have the token itself among the best, from the same number") {
  Door door;
  const HttpAnswer answer = door.complete(R"({"prompt":"a","max_tokens":2,"logprobs":2})");
  CHECK(answer.body.find(
            R"("logprobs":{"tokens":["H","l"],"token_logprobs":[-0.5,-0.5],)"
            R"("top_logprobs":[{"H":-0.5,"b":-1.5},{"l":-0.5,"b":-1.5}],"text_offset":[0,1]})") !=
        std::string::npos);
}

TEST_CASE("echo with logprobs scores the prompt: alone with max_tokens 0, and one more with 1") {
  Door door;
  JsonValue body = json_of(
      door.complete(R"({"prompt":[[97,98,99]],"max_tokens":0,"echo":true,"logprobs":1})").body);
  CHECK(text_of(at(choice(body), "text")) == "abc");
  CHECK(text_of(at(choice(body), "finish_reason")) == "length");
  CHECK(int_of(at(at(body, "usage"), "completion_tokens")) == 0);
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    CHECK(size_of(at(at(choice(body), "logprobs"), list)) == 3);
  }
  CHECK(at(at(choice(body), "logprobs"), "token_logprobs").as_array()->at(0).is_null());
  CHECK(at(at(choice(body), "logprobs"), "top_logprobs").as_array()->at(0).is_null());
  CHECK(door.service.submitted().at(0).params.max_tokens == 0U);
  CHECK(door.service.submitted().at(0).params.num_prompt_logprobs == 1);

  // Even when the one token that comes is the end.
  door.service.set_script([](const Request& request) { return say(request, {}); });
  body = json_of(
      door.complete(R"({"prompt":[97,98,99],"max_tokens":1,"echo":true,"logprobs":1})").body);
  CHECK(text_of(at(choice(body), "text")) == "abc");
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    CHECK(size_of(at(at(choice(body), "logprobs"), list)) == 4);
  }
}

TEST_CASE("echo in a stream comes first, once") {
  Door door;
  auto events = events_of(
      door.complete(R"({"prompt":"ab","max_tokens":2,"echo":true,"logprobs":0,"stream":true})"));
  REQUIRE(events.size() == 3);
  CHECK(text_of(at(choice(events[0]), "text")) == "ab");
  CHECK(size_of(at(at(choice(events[0]), "logprobs"), "tokens")) == 2);
  CHECK(text_of(at(choice(events[1]), "text")) == "Hel");
  CHECK(int_of(at(at(choice(events[1]), "logprobs"), "text_offset").as_array()->at(0)) == 2);
  events = events_of(door.complete(R"({"prompt":"ab","max_tokens":1,"echo":true,"stream":true})"));
  REQUIRE(events.size() == 1);
  CHECK(text_of(at(choice(events[0]), "text")) == "abHel");
}

TEST_CASE("echo of nothing but the prompt asks the router nothing") {
  Door door;
  const JsonValue body =
      json_of(door.complete(R"({"prompt":["ab","c"],"max_tokens":0,"echo":true})").body);
  CHECK(text_of(at(choice(body, 0), "text")) == "ab");
  CHECK(text_of(at(choice(body, 1), "text")) == "c");
  CHECK(int_of(at(at(body, "usage"), "prompt_tokens")) == 3);
  CHECK(door.service.submitted().empty());
}

TEST_CASE("lists of prompts and n become choices with their own index and seed") {
  Door door;
  const JsonValue body =
      json_of(door.complete(R"({"prompt":[[97],[98,98]],"n":2,"seed":10,"max_tokens":1})").body);
  REQUIRE(size_of(at(body, "choices")) == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(int_of(at(choice(body, i), "index")) == static_cast<std::int64_t>(i));
    const Request request = door.service.submitted().at(i);
    CHECK(request.prompt.size() == i / 2 + 1);
    CHECK(request.params.seed == 10 + i % 2);
  }
  CHECK(int_of(at(at(body, "usage"), "prompt_tokens")) == 3);
  CHECK(int_of(at(at(body, "usage"), "completion_tokens")) == 4);
  const auto events =
      events_of(door.complete(R"({"prompt":["a","b"],"max_tokens":1,"stream":true})"));
  REQUIRE(events.size() == 2);
  CHECK(int_of(at(choice(events[0]), "index")) + int_of(at(choice(events[1]), "index")) == 1);
}

TEST_CASE("token ids come back when asked for, and in place of texts") {
  Door door;
  const std::string ask_ids = R"({"prompt":"ab","max_tokens":1,"return_token_ids":true)";
  const JsonValue body = json_of(door.complete(ask_ids + "}").body);
  CHECK(size_of(at(choice(body), "prompt_token_ids")) == 2);
  CHECK(int_of(at(choice(body), "token_ids").as_array()->at(0)) == 'H');
  const auto events = events_of(door.complete(ask_ids + R"(,"stream":true})"));
  CHECK(size_of(at(choice(events[0]), "prompt_token_ids")) == 2);
  const std::string named =
      door.complete(
              R"({"prompt":"a","max_tokens":1,"logprobs":1,"return_tokens_as_token_ids":true})")
          .body;
  CHECK(named.find(R"("tokens":["token_id:72"])") != std::string::npos);
  CHECK(named.find(R"("top_logprobs":[{"token_id:72":-0.5}])") != std::string::npos);
}

TEST_CASE("tokens that are parts of characters stay apart") {
  Door door;
  door.service.set_script([](const Request& request) { return say(request, {"\xC3", "\xA9"}); });
  const std::string body = door.complete(R"({"prompt":"a","max_tokens":2,"logprobs":0})").body;
  CHECK(body.find(R"("tokens":["bytes:\\xc3","bytes:\\xa9"])") != std::string::npos);
  CHECK(body.find(R"("text_offset":[0,1])") != std::string::npos);
}

TEST_CASE("a stop says what it was") {
  Door door;
  const auto stopped_by = [](std::string reason) {
    return [reason](const Request& request) {
      auto outputs = say(request, {"x"});
      outputs.back().stop_reason = reason;
      return outputs;
    };
  };
  door.service.set_script(stopped_by("\n\n"));
  CHECK(door.complete(R"({"prompt":"a","stop":["\n\n"]})").body.find(R"("stop_reason":"\n\n")") !=
        std::string::npos);
  door.service.set_script(stopped_by("258"));
  CHECK(
      door.complete(R"({"prompt":"a","stop_token_ids":[258]})").body.find(R"("stop_reason":258)") !=
      std::string::npos);
}

TEST_CASE("what is over the context is refused with both numbers") {
  Door door;
  for (const char* tail : {"\",\"max_tokens\":13}", "\",\"max_tokens\":2147483647}"}) {
    const HttpAnswer answer = door.complete(str_cat("{\"prompt\":\"", std::string(500, 'a'), tail));
    CHECK(answer.status == 400);
    const JsonValue body = json_of(answer.body);
    const JsonValue& error = at(body, "error");
    CHECK(text_of(at(error, "code")) == "context_length_exceeded");
    CHECK(text_of(at(error, "message")).find("maximum context length is 512") != std::string::npos);
    CHECK(text_of(at(error, "message")).find("500") != std::string::npos);
  }
  CHECK(door.complete(str_cat("{\"prompt\":\"", std::string(512, 'a'), "\"}")).status == 400);
  CHECK(door.complete(str_cat("{\"prompt\":\"", std::string(512, 'a'),
                              "\",\"echo\":true,\"max_tokens\":0,\"logprobs\":1}"))
            .status == 200);
  CHECK(door.service.submitted().size() == 1);
}

TEST_CASE("bad prompts are refused before they reach the router") {
  Door door;
  for (const char* body : {R"({"prompt":""})", R"({"prompt":[[]]})", R"({"prompt":[259]})",
                           R"({"prompt":[[5],[1000000]]})"}) {
    const HttpAnswer answer = door.complete(body);
    CHECK(answer.status == 400);
    const JsonValue error = json_of(answer.body);
    CHECK(text_of(at(at(error, "error"), "param")) == "prompt");
  }
  CHECK(door.service.submitted().empty());
}

TEST_CASE("prompt_logprobs come in vLLM's shape, beside echo's own list") {
  Door door;
  HttpAnswer answer = door.complete(R"({"prompt":[[97,98]],"max_tokens":1,"prompt_logprobs":1})");
  CHECK(answer.body.find(R"("prompt_logprobs":[null,{"98":{"logprob":-0.5,"rank":1,)"
                         R"("decoded_token":"b"}}])") != std::string::npos);
  CHECK(answer.body.find("\"logprobs\":null") != std::string::npos);
  CHECK(door.complete(R"({"prompt":"ab","max_tokens":1})").body.find("prompt_logprobs") ==
        std::string::npos);
  answer = door.complete(
      R"({"prompt":[[97,99]],"max_tokens":0,"echo":true,"logprobs":0,"prompt_logprobs":2})");
  const JsonValue body = json_of(answer.body);
  CHECK(door.service.submitted().back().params.num_prompt_logprobs == 2);
  // Each shape has as many as were asked for it.
  const JsonValue& tops = at(at(choice(body), "logprobs"), "top_logprobs");
  CHECK(size_of(tops) == 2);
  CHECK(tops.as_array()->at(1).as_object()->size() == 1);
  CHECK(at(choice(body), "prompt_logprobs").as_array()->at(1).as_object()->size() == 2);
}

TEST_CASE("truncate_prompt_tokens keeps the end of the prompt, in echo too") {
  Door door;
  const JsonValue body = json_of(
      door.complete(R"({"prompt":"abcdef","max_tokens":1,"truncate_prompt_tokens":2,"echo":true})")
          .body);
  CHECK(text_of(at(choice(body), "text")) == "efHel");
  CHECK(door.service.submitted().at(0).prompt == std::vector<std::int32_t>{'e', 'f'});
  const std::string longer(600, 'a');
  CHECK(door.complete("{\"prompt\":\"" + longer + "\",\"max_tokens\":10}").status == 400);
  CHECK(door.complete("{\"prompt\":\"" + longer +
                      "\",\"max_tokens\":10,\"truncate_prompt_tokens\":-1}")
            .status == 200);
  CHECK(door.service.submitted().back().prompt.size() == 512 - 10);
}

TEST_CASE("bad words reach the router as tokens, as they are and behind a blank") {
  Door door;
  (void)door.complete(R"({"prompt":"a","max_tokens":1,"bad_words":["ab"," c"]})");
  CHECK(door.service.submitted().at(0).bad_words ==
        std::vector<std::vector<std::int32_t>>{{'a', 'b'}, {' ', 'a', 'b'}, {'c'}, {' ', 'c'}});
}

TEST_CASE("what only the router can check is refused with its field too") {
  Door door;
  door.service.set_script([](const Request&) {
    return refuse(invalid_argument("logit_bias[1]: token id 999 is outside the vocabulary"));
  });
  const HttpAnswer answer = door.complete(R"({"prompt":"a","logit_bias":{"999":1}})");
  CHECK(answer.status == 400);
  CHECK(answer.body.find(R"("param":"logit_bias[1]")") != std::string::npos);
}

TEST_CASE("an answer that grows too large to keep is refused unless it is streamed") {
  Door door;
  door.service.set_script([](const Request&) {
    std::vector<Output> outputs(3);
    for (Output& output : outputs)
      output.text.assign(40 << 20, 'a');
    outputs.back().finish = wire::FinishReason::kLength;
    return outputs;
  });
  const HttpAnswer kept = door.complete(R"({"prompt":"abc","max_tokens":8,"n":2})");
  CHECK(kept.status == 400);
  CHECK(text_of(at(at(json_of(kept.body), "error"), "code")) == "answer_too_large");
  CHECK(door.service.wait_for_cancelled(1));

  door.service.set_script([](const Request&) {
    std::vector<Output> outputs(3);
    for (Output& output : outputs)
      output.tokens.push_back(
          {.token = 'a', .logprob = -1.0F, .top = std::vector<wire::TokenLogprob>(1 << 20)});
    outputs.back().finish = wire::FinishReason::kLength;
    return outputs;
  });
  const HttpAnswer scored = door.complete(R"({"prompt":"abc","max_tokens":8,"logprobs":1})");
  CHECK(scored.status == 400);
  CHECK(text_of(at(at(json_of(scored.body), "error"), "code")) == "answer_too_large");
  CHECK(events_of(door.complete(R"({"prompt":"abc","max_tokens":8,"logprobs":1,"stream":true})"))
            .size() == 3);
}
