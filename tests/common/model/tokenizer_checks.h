// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/tokenizer_data.h"

// What the tests of every tokenizer ask of it.
namespace brigade::model {

inline std::shared_ptr<const Tokenizer> make(const TokenizerData& data) {
  auto tokenizer = make_tokenizer(data);
  CAPTURE(tokenizer.status().message());
  REQUIRE(tokenizer.ok());
  return *tokenizer;
}

/// Tokens as the file spells them, joined by |.
inline std::string spell(const TokenizerData& data, const std::vector<std::int32_t>& ids) {
  std::string out;
  for (const std::int32_t id : ids)
    out += (out.empty() ? "" : "|") + data.tokens[static_cast<std::size_t>(id)];
  return out;
}

inline std::string encoded(const TokenizerData& data, std::string_view text,
                           bool parse_special = false) {
  std::vector<std::int32_t> ids;
  make(data)->encode(text, parse_special, ids);
  return spell(data, ids);
}

/// The message of the error that `change` to good data leads to.
template <typename Change>
std::string error_after(TokenizerData data, Change change) {
  change(data);
  const auto tokenizer = make_tokenizer(data);
  return tokenizer.ok() ? "no error" : tokenizer.status().message();
}

/// A megabyte of each unit takes seconds and gives at most most_per_byte ids a byte, and `prefix`
/// more.
inline void check_a_megabyte_of_each(const Tokenizer& tokenizer, std::size_t most_per_byte,
                                     std::size_t prefix,
                                     std::initializer_list<std::string_view> units) {
  for (const std::string_view unit : units) {
    CAPTURE(unit);
    std::string text;
    while (text.size() < (std::size_t{1} << 20))
      text += unit;
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::int32_t> ids;
    tokenizer.encode(text, /*parse_special=*/true, ids);
    // A quadratic way takes hours; the bound leaves room for a loaded machine and for sanitizers.
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
    CHECK(ids.size() <= most_per_byte * text.size() + prefix);
  }
}

}  // namespace brigade::model
