// SPDX-License-Identifier: Apache-2.0
#include "common/model/pre_tokenizer.h"

#include <doctest/doctest.h>

#include <string>

namespace brigade::model {
namespace {

using Pieces = std::vector<std::string_view>;

Pieces split(std::string_view name, std::string_view text) {
  const auto pre = PreTokenizer::make(name);
  REQUIRE(pre.ok());
  Pieces pieces;
  (*pre)->split(text, pieces);
  return pieces;
}

TEST_CASE("smollm splits digits one by one and the rest as GPT-2 does") {
  CHECK(split("smollm", "").empty());
  CHECK(split("smollm", "I'll pay 1234 $!") ==
        Pieces{"I", "'ll", " pay", " ", "1", "2", "3", "4", " $!"});
  CHECK(split("smollm", "a  b\n\n c  ") == Pieces{"a", " ", " b", "\n\n", " c", "  "});
  CHECK(split("smollm", "x\t\ty") == Pieces{"x", "\t", "\t", "y"});
  CHECK(split("smollm", "I'LL") == Pieces{"I", "'", "LL"});
  CHECK(split("smollm", "\u00bd\u0663\u2167") == Pieces{"\u00bd", "\u0663", "\u2167"});
  CHECK(split("smollm", "e\u0301t\u00e9 \u4e00\u4e8c") ==
        Pieces{"e", "\u0301", "t\u00e9", " \u4e00\u4e8c"});
}

TEST_CASE("gpt-2 keeps runs of digits together") {
  CHECK(split("gpt-2", "a 1234x") == Pieces{"a", " 1234", "x"});
}

TEST_CASE(
    "llama-bpe takes endings in any case, digits by threes, and line ends with what is before") {
  CHECK(split("llama-bpe", "I'LL pay 12345 (now)\n\n x") ==
        Pieces{"I", "'LL", " pay", " ", "123", "45", " (", "now", ")\n\n", " x"});
  CHECK(split("llama-bpe", "it'\u017f a\tb  \n c") ==
        Pieces{"it", "'\u017f", " a", "\tb", "  \n", " c"});
  CHECK(split("qwen2", "12 x") == Pieces{"1", "2", " x"});
}

TEST_CASE("qwen35 keeps marks with their letters, qwen2 does not") {
  CHECK(split("qwen35", "e\u0301t") == Pieces{"e\u0301t"});
  CHECK(split("qwen2", "e\u0301t") == Pieces{"e", "\u0301t"});
}

TEST_CASE("tekken and gpt-4o cut words where capitals begin") {
  CHECK(split("tekken", "fooBarBAZ qux's a//b\n/") ==
        Pieces{"foo", "Bar", "BAZ", " qux", "'s", " a", "//", "b", "\n", "/"});
  CHECK(split("gpt-4o", "fooBar's 1234") == Pieces{"foo", "Bar's", " ", "123", "4"});
}

TEST_CASE("default cuts off punctuation first and then digits by threes, and stands for no name") {
  CHECK(split("default", "a.b 12345+") == Pieces{"a", ".", "b", " ", "123", "45", "+"});
  CHECK(split("", "a.b") == split("default", "a.b"));
}

TEST_CASE("names that mean the same cut the same") {
  CHECK(split("llama3", "A'S 1234") == split("llama-bpe", "A'S 1234"));
  CHECK(split("dbrx", "A'S 1234") == split("llama-bpe", "A'S 1234"));
  const auto llama = PreTokenizer::make("pixtral");
  CHECK((*llama)->traits().whole_pieces);
  CHECK((*llama)->traits().add_bos);
  CHECK_FALSE((*PreTokenizer::make("qwen2"))->traits().whole_pieces);
}

TEST_CASE("every pre-tokenizer cuts megabytes of anything without giving up on a byte") {
  for (const std::string_view name : {"smollm", "gpt-2", "llama-bpe", "dbrx", "qwen2", "qwen35",
                                      "tekken", "gpt-4o", "deepseek-v3", "default"}) {
    CAPTURE(name);
    const auto pre = PreTokenizer::make(name);
    REQUIRE(pre.ok());
    for (const std::string_view unit :
         {"a", "A", "aA", " ", "\u0301", "1", "\n", " \n", "'", "-", "\u4e00", "\u3000", "A\u0301",
          "\u01c5", "\xf0\x90\x80\x80"}) {
      CAPTURE(unit);
      std::string text;
      while (text.size() < (std::size_t{2} << 20))
        text += unit;
      text += 'x';
      Pieces pieces;
      (*pre)->split(text, pieces);
      std::size_t size = 0;
      for (const std::string_view piece : pieces)
        size += piece.size();
      CHECK(size == text.size());
    }
  }
}

TEST_CASE("white space is Unicode's White_Space, without the Mongolian vowel separator") {
  CHECK(split("gpt-2", "a\u00a0\u3000b") == Pieces{"a", "\u00a0", "\u3000", "b"});
  CHECK(split("gpt-2", "a\u180e\u180eb") == Pieces{"a", "\u180e\u180e", "b"});
  CHECK(split("gpt-2", "a\u200b b") == Pieces{"a", "\u200b", " b"});
  CHECK(split("gpt-2", "a\u0085\u2028b") == Pieces{"a", "\u0085", "\u2028", "b"});
}

TEST_CASE("an unknown pre-tokenizer is an error that names it and those known") {
  const auto pre = PreTokenizer::make("klingon");
  CHECK(pre.status().code() == StatusCode::kInvalidArgument);
  CHECK(pre.status().message() ==
        "unknown pre-tokenizer \"klingon\"; known: smollm gpt-2 llama-bpe dbrx qwen2 qwen35 tekken "
        "gpt-4o deepseek-v3 default");
}

TEST_CASE("pieces put together are the text, however odd it is") {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    constexpr std::string_view kParts[] = {" ",
                                           "a",
                                           "1",
                                           "'s",
                                           "\n",
                                           "\u0301",
                                           "\u4e00",
                                           "\U0001f525",
                                           "\t",
                                           "-",
                                           std::string_view("\0", 1)};
    text += kParts[static_cast<std::size_t>(i * i + i / 7) % std::size(kParts)];
  }
  std::string joined;
  for (const std::string_view piece : split("smollm", text)) {
    CHECK_FALSE(piece.empty());
    joined += piece;
  }
  CHECK(joined == text);
}

}  // namespace
}  // namespace brigade::model
