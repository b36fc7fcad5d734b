// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/parse.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "common/base/strings.h"

using namespace brigade;
using namespace brigade::router;

namespace {

GenerationCallArgs completion(std::string_view fields) {
  GenerationCallArgs args;
  const auto error = parse_generation(str_cat("{\"prompt\":\"x\",", fields, "\"z\":null}"),
                                      Api::kCompletions, args);
  INFO(fields);
  if (error) INFO(error->message);
  REQUIRE_FALSE(error.has_value());
  return args;
}

ApiError refused(std::string_view body, Api api) {
  GenerationCallArgs args;
  const auto error = parse_generation(body, api, args);
  INFO(body);
  REQUIRE(error.has_value());
  CHECK(error->status == 400);
  return *error;
}

ApiError refused_completion(std::string_view fields) {
  return refused(str_cat("{\"prompt\":\"x\",", fields, "}"), Api::kCompletions);
}

ApiError refused_chat(std::string_view fields) {
  return refused(str_cat("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],", fields, "}"),
                 Api::kChat);
}

}  // namespace

TEST_CASE("unknown fields are ignored and nulls are absent") {
  const GenerationCallArgs args = completion(
      R"("model":null,"stream":null,"logprobs":null,"seed":null,"stop":null,"max_tokens":null,"n":null,
      "separate_reasoning":true,"user":"u","metadata":{"a":[1]},"return_hidden_states":false,
      "frequency_penalty":0,"presence_penalty":0.0,"repetition_penalty":1.0,"logit_bias":{},"tools":[],
      "response_format":{"type":"text"},"tool_choice":"auto","best_of":1,"suffix":"","echo":false,)");
  CHECK(args.model.empty());
  CHECK_FALSE(args.answer.stream);
  CHECK_FALSE(args.params.max_tokens.has_value());
  CHECK_FALSE(args.params.seed.has_value());
  CHECK(args.params.num_logprobs == -1);
}

TEST_CASE("fields of a completion arrive") {
  const GenerationCallArgs args = completion(
      R"("model":"m","max_tokens":7,"temperature":0.5,"top_p":0.25,"top_k":5,"seed":-3,"n":2,"stop":["a","b"],
      "stop_token_ids":[1,2],"min_tokens":3,"priority":-2,"deadline_ms":900,"ignore_eos":true,"logprobs":4,"echo":true,"stream":true,
      "stream_options":{"include_usage":true,"continuous_usage_stats":true},"return_token_ids":true,
      "return_tokens_as_token_ids":true,"add_special_tokens":false,)");
  CHECK(args.model == "m");
  CHECK(args.params.max_tokens == 7U);
  CHECK(args.params.temperature == 0.5F);
  CHECK(args.params.top_p == 0.25F);
  CHECK(args.params.top_k == 5);
  CHECK(args.params.seed == static_cast<std::uint64_t>(-3));
  CHECK(args.params.stop == std::vector<std::string>{"a", "b"});
  CHECK(args.params.stop_token_ids == std::vector<std::int32_t>{1, 2});
  CHECK(args.params.min_tokens == 3);
  CHECK(args.params.priority == -2);
  CHECK(args.params.deadline_ms == 900);
  CHECK(args.params.ignore_eos);
  CHECK(args.params.num_logprobs == 4);
  CHECK(args.params.num_prompt_logprobs == 4);
  CHECK(args.answer.n == 2);
  CHECK(args.answer.echo);
  CHECK(args.answer.stream);
  CHECK(args.answer.include_usage);
  CHECK(args.answer.continuous_usage);
  CHECK(args.answer.return_token_ids);
  CHECK(args.answer.tokens_as_ids);
  CHECK_FALSE(args.add_special_tokens);
}

TEST_CASE("a prompt is text, ids, or a list of either") {
  const std::pair<const char*, std::size_t> bodies[] = {
      {R"({"prompt":"a"})", 1},       {R"({"prompt":["a"]})", 1},
      {R"({"prompt":[1,2]})", 1},     {R"({"prompt":[[1,2]]})", 1},
      {R"({"prompt":["a","b"]})", 2}, {R"({"prompt":[[1],[2,3],[4]]})", 3},
  };
  for (const auto& [body, count] : bodies) {
    CAPTURE(body);
    GenerationCallArgs args;
    CHECK_FALSE(parse_generation(body, Api::kCompletions, args).has_value());
    CHECK(args.prompts.size() == count);
  }
  std::string many = "{\"prompt\":[\"a\"";
  for (int i = 0; i < 64; ++i)
    many += ",\"a\"";
  for (const std::string& body :
       {std::string("{}"), std::string(R"({"prompt":null})"), std::string(R"({"prompt":[]})"),
        std::string(R"({"prompt":5})"), std::string(R"({"prompt":[1,"a"]})"),
        std::string(R"({"prompt":["a",1]})"), std::string(R"({"prompt":[-1]})"),
        std::string(R"({"prompt":[2147483648]})"), std::string(R"({"prompt":[1.5]})"),
        std::string(R"({"prompt":{"a":1}})"), many + "]}"}) {
    CHECK(refused(body, Api::kCompletions).param == "prompt");
  }
}

TEST_CASE("wrong kinds and numbers out of range are refused by name and value") {
  const std::pair<const char*, const char*> fields[] = {
      {"temperature", "-0.1"},
      {"temperature", "2.5"},
      {"temperature", "1e999"},
      {"temperature", "\"1\""},
      {"temperature", "true"},
      {"temperature", "[]"},
      {"top_p", "0"},
      {"top_p", "1.1"},
      {"top_p", "-1"},
      {"top_k", "-2"},
      {"top_k", "1.5"},
      {"top_k", "2147483648"},
      {"max_tokens", "-1"},
      {"max_tokens", "0"},
      {"max_tokens", "1.5"},
      {"max_tokens", "\"5\""},
      {"max_tokens", "true"},
      {"max_tokens", "2147483648"},
      {"max_tokens", "4294967297"},
      {"max_tokens", "9007199254740993"},
      {"max_tokens", "18446744073709551615"},
      {"max_tokens", "1e400"},
      {"max_tokens", "{}"},
      {"n", "0"},
      {"n", "-1"},
      {"n", "17"},
      {"n", "1000000000"},
      {"best_of", "2"},
      {"seed", "1.5"},
      {"seed", "\"1\""},
      {"seed", "18446744073709551616"},
      {"logprobs", "21"},
      {"logprobs", "-1"},
      {"logprobs", "true"},
      {"logprobs", "1000000000"},
      {"stream", "1"},
      {"stream", "\"true\""},
      {"echo", "0"},
      {"stop", "5"},
      {"stop", "\"\""},
      {"stop", "[\"a\",1]"},
      {"stop", "[\"\"]"},
      {"min_tokens", "-1"},
      {"priority", "101"},
      {"deadline_ms", "0"},
      {"ignore_eos", "\"no\""},
      {"stop_token_ids", "[-1]"},
      {"stop_token_ids", "5"},
      {"model", "5"},
      {"stream_options", "5"},
      {"return_token_ids", "1"},
  };
  for (const auto& [name, value] : fields) {
    const ApiError error = refused_completion(str_cat("\"", name, "\":", value));
    CHECK(error.param == name);
    CHECK(error.message.find(name) != std::string::npos);
  }
  CHECK(refused_completion("\"max_tokens\":-7").message.find("-7") != std::string::npos);
  CHECK(refused_completion("\"stream_options\":{\"include_usage\":1}").param ==
        "stream_options.include_usage");
  CHECK(refused_completion("\"min_tokens\":5,\"max_tokens\":4").param == "min_tokens");
}

TEST_CASE("lists are bounded") {
  std::string stops = "\"a\"";
  for (int i = 0; i < 16; ++i)
    stops += ",\"a\"";
  CHECK(refused_completion("\"stop\":[" + stops + "]").param == "stop");
  CHECK(refused_completion("\"stop\":\"" + std::string(257, 'a') + "\"").param == "stop");
  std::string prompts = "[1]";
  for (int i = 0; i < 15; ++i)
    prompts += ",[1]";
  CHECK(refused("{\"prompt\":[" + prompts + "],\"n\":9}", Api::kCompletions).param == "n");
}

TEST_CASE("what would change the result and is not there is refused") {
  for (const char* field : {R"("tools":[{"type":"function"}])",
                            R"("tool_choice":"required")",
                            R"("tool_choice":{"type":"function"})",
                            R"("response_format":{"type":"json_object"})",
                            R"("response_format":{"type":"json_schema","json_schema":{}})",
                            R"("response_format":"text")",
                            R"("logit_bias":{"5":1})",
                            R"("presence_penalty":0.1)",
                            R"("frequency_penalty":-0.1)",
                            R"("repetition_penalty":1.1)",
                            R"("min_p":0.1)",
                            R"("chat_template":"x")",
                            R"("chat_template_kwargs":{"a":1})",
                            R"("guided_json":{})",
                            R"("functions":[1])",
                            R"("modalities":["text","audio"])",
                            R"("skip_special_tokens":false)",
                            R"("continue_final_message":true)",
                            R"("prompt_logprobs":1)",
                            R"("cache_salt":"s")"}) {
    const ApiError error = refused_chat(field);
    CHECK(error.code == "unsupported_parameter");
    CHECK(error.message.find("not supported yet") != std::string::npos);
  }
  CHECK(refused_completion(R"("suffix":"x")").param == "suffix");
  CHECK(refused_chat("\"echo\":true").param == "echo");
}

TEST_CASE("messages have text in three forms") {
  GenerationCallArgs args;
  const auto error = parse_generation(
      R"({"messages":[{"role":"developer","content":"be brief"},
                      {"role":"user","name":"n","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
                      {"role":"assistant","content":null,"tool_calls":[]},{"role":"assistant"},
                      {"role":"tool","content":"r","tool_call_id":"1"}],
          "max_tokens":5,"max_completion_tokens":7,"logprobs":true,"top_logprobs":3})",
      Api::kChat, args);
  REQUIRE_FALSE(error.has_value());
  REQUIRE(args.messages.size() == 5);
  CHECK(args.messages[0].role == "system");
  CHECK(args.messages[1].content == "a\nb");
  CHECK(args.messages[2].content.empty());
  CHECK(args.params.max_tokens == 7U);
  CHECK(args.params.num_logprobs == 3);
  CHECK(args.answer.logprobs);
  CHECK_FALSE(args.add_special_tokens);
}

TEST_CASE("messages that cannot be told to the model are refused by their place") {
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "messages"},
      {R"("hi")", "messages"},
      {R"([5])", "messages[0]"},
      {R"([{"content":"x"}])", "messages[0].role"},
      {R"([{"role":"boss","content":"x"}])", "messages[0].role"},
      {R"([{"role":5,"content":"x"}])", "messages[0].role"},
      {R"([{"role":"user","content":5}])", "messages[0].content"},
      {R"([{"role":"user","content":null}])", "messages[0].content"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":["x"]}])", "messages[0].content[0]"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
       "messages[0].content[0].type"},
      {R"([{"role":"assistant","content":null,"tool_calls":[{}]}])", "messages[0].tool_calls"},
  };
  for (const auto& [messages, param] : cases) {
    CHECK(refused(str_cat("{\"messages\":", messages, "}"), Api::kChat).param == param);
  }
  CHECK(refused("{}", Api::kChat).param == "messages");
  CHECK(refused_chat("\"top_logprobs\":2").param == "top_logprobs");
  CHECK(refused_chat("\"max_tokens\":0").param == "max_tokens");
}

TEST_CASE("a body that is no object is refused") {
  for (const char* body :
       {"[]", "5", "\"x\"", "null", "true", "", "{", "{\"prompt\":\"a\",\"n\":NaN}",
        "{\"prompt\":\"\xff\"}", "{\"n\":1,\"n\":2}"}) {
    CHECK_FALSE(refused(body, Api::kCompletions).message.empty());
  }
}

TEST_CASE("max_tokens 0 is for echo alone") {
  CHECK(completion("\"echo\":true,\"max_tokens\":0,").params.max_tokens == 0U);
}
