// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "common/model/chat_template.h"
#include "common/model/tokenizer_data.h"
#include "tests/common/model/tokenizer_checks.h"

namespace brigade::model {
namespace {

using Ids = std::vector<std::int32_t>;

/// 0 <unk>, 1 <s>, 2 </s>, 3 [INST], 4 two newlines (user-defined), bytes from kFirstByte on, then
/// pieces.
constexpr std::int32_t kFirstByte = 5;
TokenizerData tiny_data() {
  TokenizerData data;
  data.model = "llama";
  const auto add = [&](std::string_view token, TokenType type, double token_score) {
    data.tokens.emplace_back(token);
    data.types.push_back(static_cast<std::int64_t>(type));
    data.scores.push_back(token_score);
  };
  add("<unk>", TokenType::kUnknown, 0);
  for (const std::string_view control : {"<s>", "</s>", "[INST]"})
    add(control, TokenType::kControl, 0);
  add("\n\n", TokenType::kUserDefined, 0);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + '>', TokenType::kByte, 0);
  }
  double score = 0;
  // The best first: "ll" before "he", and "lo" worst of the pairs.
  for (const std::string_view piece :
       {"ll", "he", "\u2581he", "llo", "lo", "\u2581hello", "<s", "s>", "\u2581\u2581"}) {
    add(piece, TokenType::kNormal, --score);
  }
  for (const std::string_view character : {"\u2581", "h", "e", "l", "o", "<", "s", ">", "\u4e00"})
    add(character, TokenType::kNormal, --score);
  data.bos_id = 1;
  data.eos_id = 2;
  data.unknown_id = 0;
  return data;
}

TEST_CASE("characters are merged by score, with a space put before the text") {
  const TokenizerData data = tiny_data();
  CHECK(encoded(data, "hello") == "\u2581hello");
  CHECK(encoded(data, "hell") == "\u2581he|ll");
  CHECK(encoded(data, "lo") == "\u2581|lo");
  CHECK(encoded(data, "lo lo") == "\u2581|lo|\u2581|lo");
  CHECK(encoded(data, "  h") == "\u2581\u2581|\u2581|h");
  CHECK(encoded(data, "").empty());
  TokenizerData without = data;
  without.add_space_prefix = false;
  CHECK(encoded(without, "hello") == "he|llo");
}

TEST_CASE("the best merge is done first, wherever it stands") {
  // Were "he" merged first, "\u2581he" would follow; but "el" is better, and then nothing fits.
  TokenizerData data = tiny_data();
  data.tokens.emplace_back("el");
  data.types.push_back(1);
  data.scores.push_back(0);
  CHECK(encoded(data, "hello") == "\u2581|h|el|lo");
}

TEST_CASE(
    "a character that is no token becomes its bytes, or one unknown token for a run of them") {
  TokenizerData data = tiny_data();
  CHECK(encoded(data, "\u00e9l") == "\u2581|<0xC3>|<0xA9>|l");
  CHECK(encoded(data, "a\tb") == "\u2581|<0x61>|<0x09>|<0x62>");
  data.types[kFirstByte + 0xc3] = 5;  // unused
  CHECK(encoded(data, "\u00e9\u00e8l\u00e9") == "\u2581|<unk>|l|<unk>");
  data.unknown_id.reset();
  CHECK(encoded(data, "\u00e9l") == "\u2581|l");
}

TEST_CASE("a pair whose characters are no tokens themselves is still merged") {
  TokenizerData data = tiny_data();
  data.tokens.emplace_back("xy");
  data.types.push_back(1);
  data.scores.push_back(-1);
  CHECK(encoded(data, "xyx") == "\u2581|xy|<0x78>");
}

TEST_CASE(
    "ordinary text never becomes a control token, even where its pieces would merge into one") {
  const TokenizerData data = tiny_data();
  CHECK(encoded(data, "<s>") == "\u2581|<s|>");
  CHECK(encoded(data, "<s>", true) == "<s>");
  CHECK(encoded(data, "<0x0A>").find("<0x0A>") == std::string::npos);
  Ids ids;
  make(data)->encode_prompt(
      std::vector<PromptSegment>{{"<s>[INST]", true}, {"lo</s>", false}, {"</s>", true}}, ids);
  CHECK(spell(data, ids) == "<s>|[INST]|\u2581|lo|<|<0x2F>|s>|</s>");
}

TEST_CASE(
    "user-defined tokens are found in any text, and a space follows them as it does control") {
  const TokenizerData data = tiny_data();
  CHECK(encoded(data, "lo\n\nlo") == "\u2581|lo|\n\n|\u2581|lo");
  CHECK(encoded(data, "\n\n\n") == "\n\n|\u2581|<0x0A>");
}

TEST_CASE("extra white space is removed when the file asks for it") {
  TokenizerData data = tiny_data();
  data.remove_extra_whitespaces = true;
  CHECK(encoded(data, "  lo   lo  ") == "\u2581|lo|\u2581|lo");
  CHECK(encoded(data, "   ").empty());
}

TEST_CASE("words are cut apart only where no piece goes over the cut") {
  TokenizerData data = tiny_data();
  data.tokens.emplace_back("o\u2581h");
  data.types.push_back(1);
  data.scores.push_back(-0.5);
  data.tokens.emplace_back("o\u2581");
  data.types.push_back(1);
  data.scores.push_back(-0.25);
  CHECK(encoded(data, "lo he") == "\u2581|l|o\u2581h|e");
}

TEST_CASE("the space before text is taken away again by decoding, and only that one") {
  const TokenizerData data = tiny_data();
  const auto tokenizer = make(data);
  for (const std::string text :
       {"hello", " hello", "  ", "lo\n\nlo", "\u4e00\u00e9 \t", "<s>hello"}) {
    CAPTURE(text);
    Ids ids;
    tokenizer->encode(text, /*parse_special=*/true, ids);
    CHECK(tokenizer->decode(ids, /*special=*/true) == text);
  }
}

TEST_CASE("a stream loses its first space after a special token and keeps it after text") {
  const auto tokenizer = make(tiny_data());
  const std::int32_t he = *tokenizer->find(" he");
  StreamingDetokenizer at_start(tokenizer);
  CHECK(at_start.push(he) == "he");
  CHECK(at_start.push(he) == " he");
  StreamingDetokenizer after_control(tokenizer, /*special=*/false, /*previous=*/3);
  CHECK(after_control.push(he) == "he");
  StreamingDetokenizer after_text(tokenizer, /*special=*/false, /*previous=*/he);
  CHECK(after_text.push(he) == " he");
  CHECK(after_text.push(2).empty());
  CHECK(after_text.push(he) == "he");
}

TEST_CASE("byte tokens are joined to characters in a stream") {
  const auto tokenizer = make(tiny_data());
  StreamingDetokenizer stream(tokenizer);
  CHECK(stream.push(kFirstByte + 0xe4).empty());
  CHECK(stream.push(kFirstByte + 0xbb).empty());
  CHECK(stream.push(kFirstByte + 0x96) == "\u4ed6");
  CHECK(stream.push(kFirstByte + 0xf0).empty());
  CHECK(stream.push(*tokenizer->find("lo")) == "\ufffdlo");
  CHECK(stream.push(kFirstByte + 0xc3).empty());
  CHECK(stream.finish() == "\ufffd");
}

TEST_CASE("what SentencePiece adds by default is added unless the file says otherwise") {
  TokenizerData data = tiny_data();
  CHECK(make(data)->add_bos());
  CHECK_FALSE(make(data)->add_eos());
  CHECK(make(data)->adds_space_prefix());
  data.add_bos = false;
  data.add_eos = true;
  CHECK_FALSE(make(data)->add_bos());
  CHECK(make(data)->add_eos());
  const auto tokenizer = make(data);
  CHECK(Ids(tokenizer->end_ids().begin(), tokenizer->end_ids().end()) == Ids{2});
}

TEST_CASE("white space after a control token belongs to it where the model is like that") {
  TokenizerData data = tiny_data();
  data.strip_after_control = true;
  CHECK(encoded(data, "[INST] \n lo", true) == "[INST]|\u2581|lo");
  CHECK(encoded(data, "<s> lo", true) == "<s>|\u2581\u2581|lo");
  CHECK(encoded(data, "[INST]\n\n\n\nlo", true) == "[INST]|\u2581|lo");
}

TEST_CASE("bad scores and byte tokens are errors that name them") {
  using D = TokenizerData;
  CHECK(error_after(tiny_data(), [](D& d) { d.scores.pop_back(); }) ==
        "tokenizer.ggml.scores has 278 entries for 279 tokens");
  CHECK(error_after(tiny_data(), [](D& d) { d.scores[7] = std::nan(""); }) ==
        "tokenizer.ggml.scores[7] is nan");
  CHECK(error_after(tiny_data(), [](D& d) {
          d.scores[7] = std::numeric_limits<double>::infinity();
        }) == "tokenizer.ggml.scores[7] is inf");
  for (const std::string bad : {"<0x-1>", "<0xfF>", "<0x1>", "<0x111>", "x", "", "<0xGG>"}) {
    CHECK(error_after(tiny_data(), [&](D& d) {
            d.tokens[kFirstByte] = bad;
          }).starts_with("tokenizer.ggml.tokens[5]: is a byte token and"));
  }
  CHECK(error_after(tiny_data(), [](D& d) {
          for (auto& token : d.tokens)
            if (token == "llo") token = std::string(std::size_t{1} << 17, 'a');
        }).find("bytes is one too long") != std::string::npos);
  CHECK(error_after(tiny_data(), [](D& d) { d.tokens[kFirstByte + 256] = "\xff\xfe"; }) ==
        "no error");
}

TEST_CASE("a megabyte of anything is encoded in seconds by SentencePiece too") {
  const auto tokenizer = make(tiny_data());
  check_a_megabyte_of_each(
      *tokenizer, 3, 1,
      {"l", " ", "\u0301", "1", "he", "hello ", "\n", "\n\n", "\u2581", "\u4e00", "\xff"});
}

}  // namespace
}  // namespace brigade::model
