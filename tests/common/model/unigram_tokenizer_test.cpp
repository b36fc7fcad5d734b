// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "common/model/charsmap.h"
#include "common/model/tokenizer_data.h"
#include "tests/common/model/tokenizer_checks.h"

namespace brigade::model {
namespace {

/// 0 <pad>, 1 </s>, 2 <unk>, 3 <tool> (user-defined), then pieces.
TokenizerData tiny_data() {
  TokenizerData data;
  data.model = "t5";
  const auto add = [&](std::string_view token, TokenType type, double score) {
    data.tokens.emplace_back(token);
    data.types.push_back(static_cast<std::int64_t>(type));
    data.scores.push_back(score);
  };
  add("<pad>", TokenType::kControl, 0);
  add("</s>", TokenType::kControl, 0);
  add("<unk>", TokenType::kUnknown, 0);
  add("<tool>", TokenType::kUserDefined, 0);
  add("\u2581", TokenType::kNormal, -2);
  add("a", TokenType::kNormal, -2);
  add("b", TokenType::kNormal, -2);
  add("ab", TokenType::kNormal, -3);
  add("ba", TokenType::kNormal, -3.5);
  add("\u2581a", TokenType::kNormal, -3);
  add("bab", TokenType::kNormal, -9);
  add("\u00e9", TokenType::kNormal, -4);
  add("x", TokenType::kUnused, -1);
  data.eos_id = 1;
  data.unknown_id = 2;
  return data;
}

/// A map of one sequence to a text, as a double array with one node for each byte.
std::string charsmap_of(std::string_view sequence, std::string_view text) {
  // Node i is at 256 * i; a byte leads to 256 * i ^ byte, whose offset leads on.
  std::vector<std::uint32_t> units(256 * (sequence.size() + 2));
  const auto offset = [](std::size_t from, std::size_t to) {
    return static_cast<std::uint32_t>((from ^ to) << 10U);
  };
  units[0] = offset(0, 256);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(sequence[i]);
    const std::size_t at = 256 * (i + 1) ^ byte;
    const bool is_last = i + 1 == sequence.size();
    units[at] = byte | offset(at, 256 * (i + 2) - (is_last ? 1 : 0)) | (is_last ? 1U << 8U : 0U);
  }
  units[256 * (sequence.size() + 1) - 1] = 1;  // the text's place; 0 would do as well
  std::string blob(4, '\0');
  const auto bytes = static_cast<std::uint32_t>(4 * units.size());
  std::memcpy(blob.data(), &bytes, sizeof bytes);
  blob.append(reinterpret_cast<const char*>(units.data()), bytes);
  return blob + '\0' + std::string(text) + '\0';
}

TEST_CASE("text is cut into the pieces with the largest sum of scores") {
  TokenizerData data = tiny_data();
  CHECK(encoded(data, "a") == "\u2581a");
  CHECK(encoded(data, "bab") == "\u2581|b|ab");
  CHECK(encoded(data, "baab") == "\u2581|ba|ab");
  CHECK(encoded(data, "") == "");
  data.scores[10] = -4.5;  // "bab", now better than "b" and "ab"
  CHECK(encoded(data, "bab") == "\u2581|bab");
  data.add_space_prefix = false;
  CHECK(encoded(data, "bab a") == "bab|\u2581a");
}

TEST_CASE("a run of unknown characters is one unknown token, or the bytes of each") {
  TokenizerData data = tiny_data();
  CHECK(encoded(data, "a\u4e00\u4e01xb") == "\u2581a|<unk>|b");
  for (const std::string_view byte : {"<0xE4>", "<0xB8>", "<0x80>"}) {
    data.tokens.emplace_back(byte);
    data.types.push_back(static_cast<std::int64_t>(TokenType::kByte));
    data.scores.push_back(0);
  }
  CHECK(encoded(data, "\u4e00\u4e01\u4e00") ==
        "\u2581|<0xE4>|<0xB8>|<0x80>|<unk>|<0xE4>|<0xB8>|<0x80>");
}

TEST_CASE("special tokens are found before anything is mapped, control ones in trusted text") {
  const TokenizerData data = tiny_data();
  CHECK(encoded(data, "a<tool>b") == "\u2581a|<tool>|\u2581|b");
  CHECK(encoded(data, "a</s>", /*special=*/true) == "\u2581a|</s>");
  CHECK(encoded(data, "a</s>") == "\u2581a|<unk>");
}

TEST_CASE("extra white space is removed by the unigram model when the file asks for it") {
  TokenizerData data = tiny_data();
  CHECK(encoded(data, " a  b ") == "\u2581|\u2581a|\u2581|\u2581|b|\u2581");
  data.remove_extra_whitespaces = true;
  CHECK(encoded(data, "  a  b ") == "\u2581a|\u2581|b");
  CHECK(encoded(data, "   ") == "");
}

TEST_CASE("the map of characters is applied, and what it makes of spaces are spaces") {
  TokenizerData data = tiny_data();
  data.charsmap = charsmap_of("e\u0301", "\u00e9");
  CHECK(encoded(data, "e\u0301a") == "\u2581|\u00e9|a");
  CHECK(encoded(data, "ea") == "\u2581|<unk>|a");
  data.charsmap = charsmap_of("\u3000", " ");
  CHECK(encoded(data, "b\u3000a") == "\u2581|b|\u2581a");
  data.remove_extra_whitespaces = true;
  CHECK(encoded(data, "\u3000 b\u3000\u3000a\u3000") == "\u2581|b|\u2581a");
  data.charsmap = charsmap_of("a", "");
  CHECK(encoded(data, "abba") == "\u2581|b|b");
}

TEST_CASE("an end of text is added by default, and no beginning") {
  TokenizerData data = tiny_data();
  CHECK(make(data)->add_eos());
  CHECK_FALSE(make(data)->add_bos());
  data.add_eos = false;
  CHECK_FALSE(make(data)->add_eos());
}

TEST_CASE("a bad map, score or piece is an error that names it") {
  using D = TokenizerData;
  const std::string key = "tokenizer.ggml.precompiled_charsmap: ";
  CHECK(error_after(tiny_data(), [](D& d) { d.charsmap = "abc"; }) ==
        key + "it has 3 bytes, too few for its header");
  CHECK(error_after(tiny_data(), [](D& d) {
          d.charsmap = std::string("\xff\xff\xff\xff____", 8);
        }) == key + "its trie is 4294967295 bytes of 4, in units of 4");
  CHECK(error_after(tiny_data(), [](D& d) { d.charsmap = std::string("\0\0\0\0____", 8); }) ==
        key + "its trie is 0 bytes of 4, in units of 4");
  CHECK(error_after(tiny_data(), [](D& d) { d.charsmap = std::string("\4\0\0\0____text", 12); }) ==
        key + "its last text has no end");
  CHECK(error_after(tiny_data(), [](D& d) {
          d.charsmap = charsmap_of("a", std::string(257, 'b'));
        }) == key + "it makes a text of 257 bytes of a character; at most 256 are allowed");
  CHECK(error_after(tiny_data(), [](D& d) { d.scores[5] = std::nan(""); }) ==
        "tokenizer.ggml.scores[5] is nan");
  CHECK(error_after(tiny_data(), [](D& d) { d.scores.clear(); }) ==
        "tokenizer.ggml.scores has 0 entries for 13 tokens");
  CHECK(error_after(tiny_data(), [](D& d) { d.tokens[5] = "b"; }) ==
        "tokenizer.ggml.tokens[6] \"b\" is also [5]");
  CHECK(error_after(tiny_data(), [](D& d) { d.tokens[5] = std::string(513, 'a'); }) ==
        "tokenizer.ggml.tokens[5] has 513 bytes; at most 512 are allowed");
  CHECK(error_after(tiny_data(), [](D& d) { d.tokens[5] = "\xff\xfe"; }) == "no error");
}

TEST_CASE("a map whose units lead anywhere maps in bounded time and reads nothing beyond it") {
  std::uint64_t state = 1;
  const std::string text(1000, 'a');
  for (int round = 0; round < 50; ++round) {
    std::string blob = charsmap_of("ab", "b");
    for (std::size_t i = 4; i + 4 < blob.size() - 3; i += 4) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const auto unit =
          static_cast<std::uint32_t>(state >> 32U) & (round % 2 == 0 ? ~0U : 0xffdffU);
      std::memcpy(blob.data() + i, &unit, sizeof unit);
    }
    const auto map = Charsmap::parse(blob);
    REQUIRE(map.ok());
    for (std::string_view rest = text; !rest.empty();) {
      const Charsmap::Step step = map->step(rest);
      REQUIRE(step.length >= 1);
      REQUIRE(step.length <= rest.size());
      REQUIRE(step.text.size() <= Charsmap::kMaxText);
      rest.remove_prefix(step.length);
    }
  }
}

TEST_CASE("a megabyte of anything is encoded in seconds by the unigram model too") {
  TokenizerData data = tiny_data();
  for (std::size_t length = 3; length <= 512; ++length) {
    data.tokens.push_back(std::string(length, 'a'));
    data.types.push_back(static_cast<std::int64_t>(TokenType::kNormal));
    data.scores.push_back(-static_cast<double>(length));
  }
  const auto tokenizer = make(data);
  check_a_megabyte_of_each(*tokenizer, 3, 1,
                           {"a", " ", "\u0301", "1", "ba", "\n", "\u4e00", "\xff"});
}

}  // namespace
}  // namespace brigade::model
