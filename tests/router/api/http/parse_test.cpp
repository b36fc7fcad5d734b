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

std::optional<ApiError> refused_or_none(std::string_view fields) {
  GenerationCallArgs args;
  return parse_generation(str_cat("{\"prompt\":\"x\",", fields, "}"), Api::kCompletions, args);
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

TEST_CASE("controls of sampling arrive") {
  const GenerationCallArgs args = completion(
      R"("min_p":0.25,"typical_p":0.5,"repetition_penalty":1.5,"presence_penalty":-2,
      "frequency_penalty":0.75,"logit_bias":{"5":-100,"0":2.5},"bad_words":["a b","c"],
      "allowed_token_ids":[3,1],"include_stop_str_in_output":true,"skip_special_tokens":false,
      "spaces_between_special_tokens":false,"user":"me","priority":-3,"deadline_ms":50,
      "prompt_logprobs":2,"logprobs":1,"echo":true,"truncate_prompt_tokens":-1,)");
  CHECK(args.params.min_p == 0.25F);
  CHECK(args.params.typical_p == 0.5F);
  CHECK(args.params.repetition_penalty == 1.5F);
  CHECK(args.params.presence_penalty == -2.0F);
  CHECK(args.params.frequency_penalty == 0.75F);
  REQUIRE(args.params.logit_bias.size() == 2);
  CHECK(args.params.logit_bias[0].token == 5);
  CHECK(args.params.logit_bias[0].bias == -100.0F);
  CHECK(args.params.logit_bias[1].bias == 2.5F);
  CHECK(args.params.bad_words == std::vector<std::string>{"a b", "c"});
  CHECK(args.params.allowed_token_ids == std::vector<std::int32_t>{3, 1});
  CHECK(args.params.include_stop_str);
  CHECK(args.params.keep_special_tokens);
  CHECK(args.params.priority == -3);
  CHECK(args.params.deadline_ms == 50);
  CHECK(args.answer.prompt_logprobs == 2);
  CHECK(args.params.num_logprobs == 1);
  CHECK(args.params.num_prompt_logprobs == 2);
  CHECK(args.truncate_prompt_tokens == -1);
  CHECK(completion("\"bad_words\":\"one\",").params.bad_words.size() == 1);
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
      {"n", "129"},
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
      {"min_p", "1.1"},
      {"min_p", "-0.1"},
      {"min_p", "\"0\""},
      {"typical_p", "0"},
      {"typical_p", "1.5"},
      {"repetition_penalty", "0"},
      {"repetition_penalty", "-1"},
      {"repetition_penalty", "101"},
      {"presence_penalty", "2.1"},
      {"presence_penalty", "-2.1"},
      {"frequency_penalty", "3"},
      {"frequency_penalty", "\"1\""},
      {"logit_bias", "[]"},
      {"logit_bias", "{\"a\":1}"},
      {"logit_bias", "{\"-1\":1}"},
      {"logit_bias", "{\"1 \":1}"},
      {"logit_bias", "{\"\":1}"},
      {"logit_bias", "{\"99999999999\":1}"},
      {"bad_words", "5"},
      {"bad_words", "[\"\"]"},
      {"bad_words", "[1]"},
      {"allowed_token_ids", "[]"},
      {"allowed_token_ids", "[-1]"},
      {"allowed_token_ids", "5"},
      {"include_stop_str_in_output", "1"},
      {"skip_special_tokens", "\"yes\""},
      {"spaces_between_special_tokens", "0"},
      {"prompt_logprobs", "-1"},
      {"prompt_logprobs", "21"},
      {"truncate_prompt_tokens", "0"},
      {"truncate_prompt_tokens", "-2"},
      {"truncate_prompt_tokens", "1.5"},
      {"user", "5"},
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
  for (const char* bias : {"101", "-101", "\"1\"", "null"}) {
    const auto error = refused_or_none(str_cat(R"("logit_bias":{"7":)", bias, "}"));
    CHECK(error.value_or(ApiError{.param = "none"}).param ==
          (std::string_view(bias) == "null" ? "none" : "logit_bias.7"));
  }
  CHECK(refused_completion(R"("prompt_logprobs":0,"stream":true)").param == "prompt_logprobs");
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
  for (const char* field :
       {R"("tools":[{"type":"function"}])", R"("tool_choice":"required")",
        R"("tool_choice":{"type":"function"})", R"("response_format":{"type":"json_object"})",
        R"("response_format":{"type":"json_schema","json_schema":{}})",
        R"("response_format":"text")", R"("chat_template":"x")", R"("guided_json":{})",
        R"("functions":[1])", R"("modalities":["text","audio"])",
        R"("tools":[{"type":"function"}],"tool_choice":"auto")", R"("guided_choice":["a"])",
        R"("structured_outputs":{"regex":"a"})", R"("cache_salt":"s")"}) {
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
  const auto& messages = args.chat.messages;
  REQUIRE(messages.size() == 5);
  CHECK(messages[0].role == "system");
  CHECK(messages[1].content == "a\nb");
  CHECK(messages[1].members.size() == 1);
  CHECK(messages[2].content.empty());
  CHECK(messages[2].members.empty());
  CHECK(messages[4].members.at(0).first == "tool_call_id");
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
      {R"([{"role":"assistant","content":null,"tool_calls":[{}]}])",
       "messages[0].tool_calls[0].function.name"},
      {R"([{"role":"assistant","tool_calls":{}}])", "messages[0].tool_calls"},
      {R"([{"role":"user","content":"x","tool_calls":[{"function":{"name":"f"}}]}])",
       "messages[0].tool_calls"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"["}}]}])",
       "messages[0].tool_calls[0].function.arguments"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1]"}}]}])",
       "messages[0].tool_calls[0].function.arguments"},
      {R"([{"role":"tool","content":"x","tool_call_id":5}])", "messages[0].tool_call_id"},
      {R"([{"role":"user","content":"x","name":[]}])", "messages[0].name"},
  };
  for (const auto& [messages, param] : cases) {
    CHECK(refused(str_cat("{\"messages\":", messages, "}"), Api::kChat).param == param);
  }
  CHECK(refused("{}", Api::kChat).param == "messages");
  CHECK(refused_chat("\"top_logprobs\":2").param == "top_logprobs");
  CHECK(refused_chat("\"max_tokens\":0").param == "max_tokens");
}

TEST_CASE("how a conversation is rendered arrives") {
  const auto chat = [](std::string_view fields) {
    GenerationCallArgs args;
    const auto error = parse_generation(
        str_cat(R"({"messages":[{"role":"assistant","content":"x"}],)", fields, "\"z\":1}"),
        Api::kChat, args);
    REQUIRE_FALSE(error.has_value());
    return args.chat;
  };
  CHECK(chat("").add_generation_prompt);
  CHECK_FALSE(chat("\"add_generation_prompt\":false,").add_generation_prompt);
  CHECK(chat("\"continue_final_message\":true,").continue_final_message);
  CHECK_FALSE(chat("\"continue_final_message\":true,").add_generation_prompt);
  const ChatArgs args = chat(
      R"("tools":[{"type":"function"}],"tool_choice":"none","chat_template_kwargs":{"think":true},)");
  REQUIRE(args.globals.size() == 2);
  CHECK(args.globals[0].first == "tools");
  CHECK(args.globals[0].second.array() != nullptr);
  CHECK(args.globals[1].first == "think");
  CHECK(args.globals[1].second.truthy());
  CHECK(chat(R"("tools":[],"tool_choice":"auto",)").globals.empty());
  CHECK(refused_chat(R"("continue_final_message":true,"add_generation_prompt":true)").param ==
        "continue_final_message");
  CHECK(refused_chat(R"("chat_template_kwargs":5)").param == "chat_template_kwargs");
  CHECK(refused_chat(R"("chat_template_kwargs":{"messages":[]})").param == "chat_template_kwargs");
  CHECK(refused_chat(R"("tools":{})").param == "tools");
}

TEST_CASE("a body that is no object is refused") {
  for (const char* body :
       {"[]", "5", "\"x\"", "null", "true", "", "{", "{\"prompt\":\"a\",\"n\":NaN}",
        "{\"prompt\":\"\xff\"}", "{\"n\":1,\"n\":2}"}) {
    CHECK_FALSE(refused(body, Api::kCompletions).message.empty());
  }
}

TEST_CASE("max_tokens 0 is for echo and scores of the prompt alone") {
  CHECK(completion("\"echo\":true,\"max_tokens\":0,").params.max_tokens == 0U);
  CHECK(completion("\"prompt_logprobs\":1,\"max_tokens\":0,").params.max_tokens == 0U);
}
