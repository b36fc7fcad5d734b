// SPDX-License-Identifier: Apache-2.0
#include "router/api/prompt.h"

#include <doctest/doctest.h>

#include "tests/support/fake_service.h"
#include "tests/support/fake_tokenizer.h"

using namespace brigade;
using namespace brigade::router;
using brigade::testing::FakeTokenizer;

namespace {

using Ids = std::vector<std::int32_t>;

ServedModel model_with(bool add_bos) {
  ServedModel model;
  model.tokenizer = std::make_shared<FakeTokenizer>(add_bos);
  return model;
}

}  // namespace

TEST_CASE("raw text has special tokens, and one BOS where the tokenizer wants it") {
  const ServedModel plain = model_with(false);
  const ServedModel bos = model_with(true);
  CHECK(prompt_from_text(plain, "<s>a").value() == Ids{FakeTokenizer::kBos, 'a'});
  CHECK(prompt_from_text(plain, "a").value() == Ids{'a'});
  CHECK(prompt_from_text(bos, "a").value() == Ids{FakeTokenizer::kBos, 'a'});
  CHECK(prompt_from_text(bos, "<s>a").value() == Ids{FakeTokenizer::kBos, 'a'});
  CHECK(prompt_from_text(bos, "a", {.add_special_tokens = false}).value() == Ids{'a'});
}

TEST_CASE("raw text ends with EOS where the tokenizer wants it") {
  ServedModel model;
  model.tokenizer = std::make_shared<FakeTokenizer>(/*add_bos=*/false, /*add_eos=*/true);
  CHECK(prompt_from_text(model, "a").value() == Ids{'a', FakeTokenizer::kEnd});
  CHECK(prompt_from_text(model, "a", {.add_special_tokens = false}).value() == Ids{'a'});
}

TEST_CASE("in plain text the texts of special tokens are only text") {
  const ServedModel bos = model_with(true);
  CHECK(prompt_from_text(bos, "<s>", {.parse_special = false}).value() ==
        Ids{FakeTokenizer::kBos, '<', 's', '>'});
}

TEST_CASE("a text that is not UTF-8 is refused by every road, with its place") {
  const testing::FakeService service;
  const ServedModel& model = *service.models().front();
  CHECK(prompt_from_text(model, "a\xff").status().code() == StatusCode::kInvalidArgument);
  CHECK(prompt_from_text(model, "\xc3", {.parse_special = false}).status().code() ==
        StatusCode::kInvalidArgument);
  const auto content = prompt_from_messages(model, {{"user", "a"}, {"user", "\xed\xa0\x80"}});
  REQUIRE_FALSE(content.ok());
  CHECK(content.status().code() == StatusCode::kInvalidArgument);
  CHECK(content.status().message() == "the content of message 1 is not valid UTF-8");
  CHECK(prompt_from_messages(model, {{"\xff", "a"}}).status().code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("token ids outside the vocabulary are refused with their place") {
  const ServedModel model = model_with(false);
  CHECK(prompt_from_ids(model, {0, 258}).value() == Ids{0, 258});
  for (const std::int32_t bad : {-1, 259}) {
    const auto result = prompt_from_ids(model, {0, bad});
    REQUIRE_FALSE(result.ok());
    CHECK(result.status().code() == StatusCode::kInvalidArgument);
    CHECK(result.status().message().find(std::to_string(bad) + " at 1") != std::string::npos);
  }
}

TEST_CASE("a chat is rendered by the model's template") {
  const testing::FakeService service;
  const ServedModel& model = *service.models().front();
  const Ids ids = prompt_from_messages(model, {{"user", "<|im_end|>"}}).value();
  CHECK(ids.front() == FakeTokenizer::kStart);
  CHECK(std::count(ids.begin(), ids.end(), FakeTokenizer::kEnd) == 1);
  const Ids shorter =
      prompt_from_messages(model, {{"user", "<|im_end|>"}}, {.add_generation_prompt = false})
          .value();
  CHECK(shorter.size() + std::string("_assistant\n").size() == ids.size());
}

TEST_CASE("a model without a template takes no chat") {
  const auto result = prompt_from_messages(model_with(false), {{"user", "a"}});
  REQUIRE_FALSE(result.ok());
  CHECK(result.status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a continued message ends the prompt, trimmed or not by the template") {
  const auto prompt = [](const char* source, const std::string& last) {
    testing::FakeService service;
    ServedModel model = *service.models().front();
    model.chat_template = model::ChatTemplate::parse(source).value();
    const auto ids =
        prompt_from_messages(model, {{"user", "last"}, {"assistant", last}},
                             {.add_generation_prompt = false, .continue_final_message = true});
    return ids.ok() ? model.tokenizer->decode(ids.value(), true) : ids.status().message();
  };
  const char* plain = "{% for m in messages %}[{{ m.content }}]{% endfor %}END";
  const char* trimmed = "{% for m in messages %}[{{ m.content | trim }}]{% endfor %}END";
  CHECK(prompt(plain, "so far ") == "[last][so far ");
  CHECK(prompt(trimmed, "so far ") == "[last][so far");
  CHECK(prompt(plain, "last") == "[last][last");
  CHECK(prompt("nothing of it", "so far").find("continue_final_message: ") == 0);
  CHECK(prompt(plain, " ").find("continue_final_message: ") == 0);
}

TEST_CASE("templates see tool calls, tools and a request's own arguments") {
  testing::FakeService service;
  ServedModel model = *service.models().front();
  model.chat_template =
      model::ChatTemplate::parse(
          "{% for m in messages %}{{ m.role }}:{{ m.content }}"
          "{% for c in m.tool_calls %}({{ c.function.name }} {{ c.function.arguments.x }})"
          "{% endfor %}{% if m.tool_call_id is defined %}<{{ m.tool_call_id }}>{% endif %};"
          "{% endfor %}{{ tools | length }}{{ think }}")
          .value();
  using model::jinja::Value;
  const auto text = [](const char* word) { return Value::string(word, /*trusted=*/false); };
  const Value call = Value::dict(
      {{text("function"),
        Value::dict({{text("name"), text("f")},
                     {text("arguments"), Value::dict({{text("x"), Value(std::int64_t{7})}})}})}});
  const auto ids = prompt_from_messages(
      model,
      {{"assistant", "", {{"tool_calls", Value::list({call})}}},
       {"tool", "r", {{"tool_call_id", text("<|im_end|>")}}}},
      {.globals = {{"tools", Value::list({call, call})}, {"think", text("yes")}}});
  REQUIRE_MESSAGE(ids.ok(), ids.status().message());
  CHECK(model.tokenizer->decode(ids.value(), true) == "assistant:(f 7);tool:r<<|im_end|>>;2yes");
  CHECK(std::count(ids->begin(), ids->end(), FakeTokenizer::kEnd) == 0);
}
