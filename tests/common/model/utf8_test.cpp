// SPDX-License-Identifier: Apache-2.0
#include "common/model/utf8.h"

#include <doctest/doctest.h>

#include "common/model/tokenizer.h"

namespace brigade::model {
namespace {

TEST_CASE("every code point but the surrogates goes to UTF-8 and back") {
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    std::string text;
    append_utf8(code, text);
    const Utf8Step step = utf8_step(text, 0);
    REQUIRE(step.kind == Utf8Step::Kind::kCharacter);
    REQUIRE(step.length == text.size());
    REQUIRE(step.code_point == code);
  }
}

TEST_CASE("valid UTF-8 is told from overlong, surrogate, too large and truncated") {
  CHECK(is_valid_utf8(""));
  CHECK(is_valid_utf8(std::string_view("a\0b", 3)));
  CHECK(is_valid_utf8("\xc2\x80 \xed\x9f\xbf \xee\x80\x80 \xf4\x8f\xbf\xbf"));
  for (const char* text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                           "a\xc3", "\xe4\xb8", "\xf0\x9f\x94", "\xc3(", "\xe4(\x80"}) {
    CHECK_FALSE(is_valid_utf8(text));
  }
}

}  // namespace
}  // namespace brigade::model
