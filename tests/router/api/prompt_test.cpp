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
