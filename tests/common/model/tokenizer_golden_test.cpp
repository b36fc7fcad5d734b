// SPDX-License-Identifier: Apache-2.0
// Needs the real model's vocabulary; says so and passes over where the file is not there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <utility>

#include "common/model/chat_template.h"
#include "common/model/gguf.h"
#include "common/model/tokenizer_data.h"
#include "tests/common/model/golden_lines.h"
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

/// What of a text can come back: not the bytes that the vocabulary has no token for.
std::string known_text(const Tokenizer& tokenizer, std::string_view text) {
  std::string bytes;
  for (const char c : text) {
    if (tokenizer.find(std::string(1, c)).has_value()) bytes += c;
  }
  std::string out;
  append_lossy_utf8(bytes, /*final=*/true, out);
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
    if (tokenizer.decode(ids, /*special=*/true) != known_text(tokenizer, text) &&
        wrong_text++ == 0) {
      MESSAGE("first line that does not come back: ", line);
    }
  }
  CHECK(wrong_ids == 0);
  CHECK(wrong_text == 0);
  CHECK(count == num_lines);
}

/// What a file of make_tokenizer_golden.py expects of one tokenizer.
class Expectation final {
 public:
  explicit Expectation(const boost::json::object& json) : json_(json) {}

  void check() const {
    const std::string path(json_.at("model").as_string());
    CAPTURE(path);
    const auto file = GgufFile::open(path);
    REQUIRE(file.ok());
    auto data = read_tokenizer_data(**file);
    REQUIRE(data.ok());
    data->pre = std::string(json_.at("pre").as_string());
    CAPTURE(data->pre);
    const auto tokenizer = make_tokenizer(*data);
    CAPTURE(tokenizer.status().message());
    REQUIRE(tokenizer.ok());
    check_lines(**tokenizer, lines_of(**tokenizer, *data));
  }

 private:
  [[nodiscard]] std::int64_t number(std::string_view key) const {
    return json_.at(key).to_number<std::int64_t>();
  }

  [[nodiscard]] GoldenLines lines_of(const Tokenizer& tokenizer, const TokenizerData& data) const {
    std::vector<std::string> words;
    std::vector<std::string> control;
    for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const std::string text(tokenizer.token_bytes(id, /*special=*/true));
      const auto type =
          data.types.empty() ? TokenType::kNormal : static_cast<TokenType>(data.types[id]);
      if (type == TokenType::kControl) control.push_back(text);
      if (!tokenizer.is_special(id) && !text.empty() && is_valid_utf8(text)) words.push_back(text);
    }
    REQUIRE(static_cast<std::int64_t>(words.size()) == number("num_words"));
    return {std::move(words), std::move(control)};
  }

  void check_lines(const Tokenizer& tokenizer, const GoldenLines& lines) const {
    const auto special_every = static_cast<std::uint64_t>(number("special_every"));
    const auto chunk = static_cast<std::uint64_t>(number("chunk"));
    const auto& samples = json_.at("samples").as_array();
    const bool has_texts = json_.contains("texts");
    std::uint64_t hash = GoldenLines::kHashStart;
    std::uint64_t text_hash = GoldenLines::kHashStart;
    std::size_t num_wrong = 0;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(number("count")); ++i) {
      const std::string text = lines.line(i);
      std::vector<std::int32_t> ids;
      tokenizer.encode(text, special_every > 0 && i % special_every == 0, ids);
      if (i < samples.size()) {
        CAPTURE(text);
        CHECK(ids == boost::json::value_to<std::vector<std::int32_t>>(samples[i]));
      }
      if (has_texts) {
        GoldenLines::hash_line(text_bytes(tokenizer, ids), text_hash);
      } else if (tokenizer.decode(ids, /*special=*/true) != text_back(tokenizer, text)) {
        if (num_wrong++ == 0) MESSAGE("first line that does not come back: ", i, " ", text);
      }
      GoldenLines::hash_line(ids, hash);
      if ((i + 1) % chunk != 0) continue;
      CAPTURE(i);
      check_hash("hashes", i / chunk, hash);
      if (has_texts) check_hash("texts", i / chunk, text_hash);
    }
    CHECK(num_wrong == 0);
  }

  /// And starts the next chunk's.
  void check_hash(std::string_view key, std::uint64_t chunk, std::uint64_t& hash) const {
    const auto& expected = json_.at(key).as_array().at(chunk).as_string();
    CHECK(hex(std::exchange(hash, GoldenLines::kHashStart)) == std::string(expected));
  }

  /// Of the decoded text; none where there is an unknown character.
  static std::vector<std::int32_t> text_bytes(const Tokenizer& tokenizer,
                                              std::span<const std::int32_t> ids) {
    const bool is_known = std::find(ids.begin(), ids.end(), *tokenizer.find("<unk>")) == ids.end();
    const std::string text = is_known ? tokenizer.decode(ids, /*special=*/true) : "";
    std::vector<std::int32_t> bytes;
    for (const char c : text)
      bytes.push_back(static_cast<std::uint8_t>(c));
    return bytes;
  }

  /// To SentencePiece its sign for a space is one.
  [[nodiscard]] std::string text_back(const Tokenizer& tokenizer, std::string_view text) const {
    constexpr std::string_view kSign = "\u2581";
    std::string out = known_text(tokenizer, text);
    const bool has_sign = json_.at("truth").as_string() == "sentencepiece";
    for (std::size_t at = out.find(kSign); has_sign && at != std::string::npos;
         at = out.find(kSign))
      out.replace(at, kSign.size(), " ");
    return out;
  }

  static std::string hex(std::uint64_t value) {
    std::ostringstream out;
    out << std::hex << std::setw(16) << std::setfill('0') << value;
    return out.str();
  }

  const boost::json::object& json_;
};

void check_file(const std::string& path) {
  const auto golden = boost::json::parse(read_file(path));
  REQUIRE(golden.at("magic").as_string() == "brigade-tokenizer-golden");
  for (const auto& tokenizer : golden.at("tokenizers").as_array()) {
    Expectation(tokenizer.as_object()).check();
  }
}

TEST_CASE("ids are those of the reference tokenizers on generated lines, and decode to the text") {
  if (real_tokenizer() == nullptr) {
    MESSAGE(test::kNoModel);
    return;
  }
  check_file("tests/golden/tokenizers.json");
}

TEST_CASE("ids are those that the file in BRIGADE_TOKENIZER_GOLDEN expects") {
  const char* path = std::getenv("BRIGADE_TOKENIZER_GOLDEN");
  if (path != nullptr) check_file(path);
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
  // <|endoftext|> ends a generation too, though the file names <|im_end|> alone.
  CHECK(std::vector<std::int32_t>(tokenizer->end_ids().begin(), tokenizer->end_ids().end()) ==
        std::vector<std::int32_t>{0, 2});
}

}  // namespace
}  // namespace brigade::model
