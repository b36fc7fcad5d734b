// SPDX-License-Identifier: Apache-2.0
#include "router/api/prompt.h"

#include <doctest/doctest.h>

#include "tests/support/fake_service.h"
#include "tests/support/fake_tokenizer.h"

using namespace brigade;
using namespace brigade::router;
using brigade::testing::FakeTokenizer;

namespace {

/// Two letters together are one token, so that where text is cut shows.
class PairTokenizer final : public model::Tokenizer {
 public:
  void encode(std::string_view text, bool parse_special,
              std::vector<std::int32_t>& ids) const override {
    while (!text.empty()) {
      std::size_t used = 1;
      if (text.starts_with("ab")) {
        ids.push_back(1000);
        used = 2;
      } else {
        bytes_.encode(text.starts_with("<s>") ? text.substr(0, 3) : text.substr(0, 1),
                      parse_special, ids);
        if (text.starts_with("<s>")) used = 3;
      }
      text.remove_prefix(used);
    }
  }
  std::string_view token_bytes(std::int32_t id, bool special) const override {
    return id == 1000 ? "ab" : bytes_.token_bytes(id, special);
  }
  std::int32_t vocab_size() const override { return 1001; }
  bool is_special(std::int32_t id) const override { return bytes_.is_special(id); }
  std::optional<std::int32_t> find(std::string_view text) const override {
    return bytes_.find(text);
  }
  std::optional<std::int32_t> bos_id() const override { return bytes_.bos_id(); }
  std::optional<std::int32_t> eos_id() const override { return bytes_.eos_id(); }
  std::span<const std::int32_t> end_ids() const override { return bytes_.end_ids(); }
  bool add_bos() const override { return false; }

 private:
  FakeTokenizer bytes_;
};

using Ids = std::vector<std::int32_t>;

ServedModel model_with(bool add_bos) {
  ServedModel model;
  model.tokenizer = std::make_shared<FakeTokenizer>(add_bos);
  return model;
}

}  // namespace

TEST_CASE("text between special tokens is one text, whoever wrote its halves") {
  const PairTokenizer tokenizer;
  CHECK(encode_segments(tokenizer, {{"<s>xa", true}, {"b", false}, {"a", false}, {"b<s>", true}}) ==
        Ids{FakeTokenizer::kBos, 'x', 1000, 1000, FakeTokenizer::kBos});
}

TEST_CASE("a special token's text in a message stays text") {
  const FakeTokenizer tokenizer;
  CHECK(encode_segments(tokenizer, {{"<s>", true}, {"<s>", false}}) ==
        Ids{FakeTokenizer::kBos, '<', 's', '>'});
}

TEST_CASE("raw text has special tokens, and one BOS where the tokenizer wants it") {
  const ServedModel plain = model_with(false);
  const ServedModel bos = model_with(true);
  CHECK(prompt_from_text(plain, "<s>a").value() == Ids{FakeTokenizer::kBos, 'a'});
  CHECK(prompt_from_text(plain, "a").value() == Ids{'a'});
  CHECK(prompt_from_text(bos, "a").value() == Ids{FakeTokenizer::kBos, 'a'});
  CHECK(prompt_from_text(bos, "<s>a").value() == Ids{FakeTokenizer::kBos, 'a'});
  CHECK(prompt_from_text(bos, "a", /*add_special_tokens=*/false).value() == Ids{'a'});
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
