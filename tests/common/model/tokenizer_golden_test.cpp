// SPDX-License-Identifier: Apache-2.0
// Needs the real model's vocabulary; says so and passes over where the file is not there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "common/model/chat_template.h"
#include "common/model/gguf.h"
#include "common/model/tokenizer.h"
#include "tests/common/model/json_values.h"
#include "tests/support/tiny_model.h"

namespace brigade::model {
namespace {

std::shared_ptr<const Tokenizer> real_tokenizer() {
  const std::string path = test::real_model_path();
  if (path.empty()) return nullptr;
  const auto file = GgufFile::open(path);
  REQUIRE(file.ok());
  const auto tokenizer = Tokenizer::load(**file);
  CAPTURE(tokenizer.status().message());
  REQUIRE(tokenizer.ok());
  return *tokenizer;
}

/// The text without the bytes that the vocabulary has no token for: what can come back.
std::string known_bytes(const Tokenizer& tokenizer, const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (tokenizer.find(std::string(1, c)).has_value()) out += c;
  }
  return out;
}

/// Lines {"text", "ids"} and, where special tokens were parsed, "special": true.
void check_lines(const Tokenizer& tokenizer, const std::string& path, std::size_t num_lines) {
  std::ifstream in(path);
  std::string line;
  std::size_t count = 0;
  std::size_t wrong_ids = 0;
  std::size_t wrong_text = 0;
  while (std::getline(in, line)) {
    const auto json = boost::json::parse(line);
    const std::string text(json.at("text").as_string());
    const auto* special = json.as_object().if_contains("special");
    const bool parse_special = special != nullptr && special->as_bool();
    std::vector<std::int32_t> expected;
    for (const auto& id : json.at("ids").as_array())
      expected.push_back(id.to_number<std::int32_t>());
    std::vector<std::int32_t> ids;
    tokenizer.encode(text, parse_special, ids);
    ++count;
    if (ids != expected && wrong_ids++ == 0) MESSAGE("first wrong ids: ", line);
    std::string bytes;
    for (const std::int32_t id : ids)
      bytes += tokenizer.token_bytes(id, /*special=*/true);
    if (bytes != known_bytes(tokenizer, text) && wrong_text++ == 0) {
      MESSAGE("first line that does not come back: ", line);
    }
  }
  CHECK(wrong_ids == 0);
  CHECK(wrong_text == 0);
  CHECK(count == num_lines);
}

TEST_CASE("ids are those of HF tokenizers on the committed lines, and decode to the text") {
  const auto tokenizer = real_tokenizer();
  if (tokenizer == nullptr) {
    MESSAGE(test::kNoModel);
    return;
  }
  check_lines(*tokenizer, "tests/golden/tokenizer-smollm.jsonl", 400);
}

TEST_CASE("ids are exact on the shared golden lines, and decode to the text") {
  const char* set = std::getenv("BRIGADE_SHARED");
  const std::string path =
      std::string(set != nullptr ? set : "../shared") + "/golden/tokenizer-smollm2/lines.jsonl";
  if (!std::ifstream(path)) {
    MESSAGE("skipped, not there: ", path);
    return;
  }
  const auto tokenizer = real_tokenizer();
  if (tokenizer == nullptr) {
    MESSAGE(test::kNoModel);
    return;
  }
  check_lines(*tokenizer, path, 23827);
}

TEST_CASE("the model's own template and tokenizer turn a chat into the ids of its text") {
  const auto tokenizer = real_tokenizer();
  if (tokenizer == nullptr) {
    MESSAGE(test::kNoModel);
    return;
  }
  const auto file = GgufFile::open(test::real_model_path());
  const auto source = (*file)->string("tokenizer.chat_template");
  REQUIRE(source.ok());
  const auto chat = ChatTemplate::parse(*source);
  REQUIRE(chat.ok());
  ChatTemplateInput input;
  input.messages = {{"user", "Hi there<|im_end|>"}};
  const auto segments = (*chat)->render(input);
  REQUIRE(segments.ok());
  std::vector<std::int32_t> ids;
  tokenizer->encode_prompt(*segments, ids);
  const std::string text =
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
      "Face<|im_end|>\n<|im_start|>user\nHi there<|im_end|><|im_end|>\n<|im_start|>assistant\n";
  CHECK(tokenizer->decode(ids, true) == text);
  // Of the four <|im_...|> of the template and the one of the user, only the former are tokens:
  // start, end, start, end, start.
  CHECK(std::count(ids.begin(), ids.end(), 1) == 3);
  CHECK(std::count(ids.begin(), ids.end(), 2) == 2);
  CHECK(tokenizer->end_ids().size() == 1);
  CHECK(tokenizer->end_ids()[0] == 2);
}

}  // namespace
}  // namespace brigade::model
