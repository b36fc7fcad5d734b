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

TEST_CASE("white space is Unicode's White_Space, without the Mongolian vowel separator") {
  CHECK(split("gpt-2", "a\u00a0\u3000b") == Pieces{"a", "\u00a0", "\u3000", "b"});
  CHECK(split("gpt-2", "a\u180e\u180eb") == Pieces{"a", "\u180e\u180e", "b"});
  CHECK(split("gpt-2", "a\u200b b") == Pieces{"a", "\u200b", " b"});
  CHECK(split("gpt-2", "a\u0085\u2028b") == Pieces{"a", "\u0085", "\u2028", "b"});
}

TEST_CASE("an unknown pre-tokenizer is an error that names it and those known") {
  const auto pre = PreTokenizer::make("klingon");
  CHECK(pre.status().code() == StatusCode::kInvalidArgument);
  CHECK(pre.status().message() == "unknown pre-tokenizer \"klingon\"; known: smollm gpt-2");
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
