// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.h"
#include "common/model/utf8.h"

// The lines that tokenizers are compared on: the same as tests/golden/tokenizer_lines.py makes.
namespace brigade::model {

class GoldenLines final {
 public:
  /// The texts of the vocabulary's ordinary tokens that are text, and of its control tokens, by id.
  GoldenLines(std::vector<std::string> words, std::vector<std::string> control)
      : words_(std::move(words)), control_(std::move(control)) {}

  [[nodiscard]] std::string line(std::uint64_t number) const {
    std::uint64_t count = 0;
    const auto below = [&](std::uint64_t bound) {
      return mix64(mix64(mix64(number) ^ ++count)) % bound;
    };
    std::string out;
    const std::uint64_t num_parts = 1 + below(15);
    for (std::uint64_t i = 0; i < num_parts; ++i) {
      const std::uint64_t kind = below(100);
      if (kind < 50) {
        out += words_[below(words_.size())];
      } else if (kind < 70) {
        out += kPieces[below(kPieces.size())];
      } else if (kind < 95 || control_.empty()) {
        const auto [low, high] = kRanges[below(kRanges.size())];
        append_utf8(static_cast<char32_t>(low + below(high - low)), out);
      } else {
        const std::string& token = control_[below(control_.size())];
        out += token.substr(0, cut(token, 1 + below(num_characters(token))));
        if (below(2) == 1) out += token;
      }
      const std::uint64_t space = below(kNumSpaces);
      out += space < 8 ? " " : space < 8 + kSpaces.size() ? kSpaces[space - 8] : "";
    }
    std::string repeated;
    const int times = below(50) == 0 ? 20 : 1;
    for (int i = 0; i < times; ++i)
      repeated += out;
    return repeated;
  }

  /// FNV-1a over the ids as 32-bit words, a line ended by 0xffffffff.
  static void hash_line(std::span<const std::int32_t> ids, std::uint64_t& hash) {
    constexpr std::uint64_t kPrime = 0x100000001b3U;
    for (const std::int32_t id : ids)
      hash = (hash ^ static_cast<std::uint32_t>(id)) * kPrime;
    hash = (hash ^ 0xffffffffU) * kPrime;
  }
  static constexpr std::uint64_t kHashStart = 0xcbf29ce484222325U;

 private:
  static std::size_t num_characters(std::string_view text) {
    std::size_t count = 0;
    for (std::size_t pos = 0; pos < text.size(); pos += utf8_step(text, pos).length)
      ++count;
    return count;
  }
  static std::size_t cut(std::string_view text, std::size_t characters) {
    std::size_t pos = 0;
    for (; characters > 0; --characters)
      pos += utf8_step(text, pos).length;
    return pos;
  }

  using Range = std::pair<std::uint64_t, std::uint64_t>;
  static constexpr std::array<Range, 14> kRanges = {{{0x01, 0x20},
                                                     {0x20, 0x7F},
                                                     {0x80, 0x250},
                                                     {0x300, 0x370},
                                                     {0x370, 0x600},
                                                     {0x900, 0xE00},
                                                     {0x1680, 0x1810},
                                                     {0x2000, 0x2070},
                                                     {0x2070, 0x2C00},
                                                     {0x3000, 0x3100},
                                                     {0x4E00, 0x9FFF},
                                                     {0xAC00, 0xD7A3},
                                                     {0x1F300, 0x1FA00},
                                                     {0x10000, 0x10FFFF}}};
  static constexpr std::array<std::string_view, 12> kSpaces = {
      "  ",   "   ",    "\t",     "\n",     "\n\n",   " \n",
      "\r\n", "\u00a0", "\u3000", "\u180e", "\u200b", "\xc2\x85"};
  static constexpr std::uint64_t kNumSpaces = 8 + kSpaces.size() + 6;
  static constexpr std::array<std::string_view, 26> kPieces = {"'s",
                                                               "'ll",
                                                               "I'M",
                                                               "don't",
                                                               "''re",
                                                               "\u017f'\u017f",
                                                               "1234567",
                                                               "3.14",
                                                               "\u0663\u0664",
                                                               "\u00b2\u00b3\u00bd",
                                                               "\u2167",
                                                               "e\u0301",
                                                               "\U0001f469\u200d\U0001f692",
                                                               "->",
                                                               "...",
                                                               "::",
                                                               "//",
                                                               "/\n",
                                                               "fooBarBAZqux",
                                                               "\u01c5\u02b0A",
                                                               "<0x0A>",
                                                               "\u2581",
                                                               "<s>",
                                                               "</s>",
                                                               "\r\n \n",
                                                               "                    "};

  std::vector<std::string> words_;
  std::vector<std::string> control_;
};

}  // namespace brigade::model
