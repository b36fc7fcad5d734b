// SPDX-License-Identifier: Apache-2.0
#include "common/model/special_tokens.h"

#include <doctest/doctest.h>

#include <string>

namespace brigade::model {
namespace {

TEST_CASE("the leftmost match is found, and the longest at its place") {
  SpecialTokens tokens;
  tokens.add("<a>", 1);
  tokens.add("<a>b", 2);
  tokens.add("<a>bcd", 3);
  tokens.add("b", 4);
  const auto at = [&](std::string_view text, std::size_t from) {
    const auto match = tokens.find(text, from);
    return match ? std::to_string(match->begin) + "+" + std::to_string(match->length) + "=" +
                       std::to_string(match->id)
                 : "none";
  };
  CHECK(at("x<a>", 0) == "1+3=1");
  CHECK(at("x<a>bc", 0) == "1+4=2");
  CHECK(at("<a>bcd", 0) == "0+6=3");
  CHECK(at("<a>bcd", 1) == "3+1=4");
  CHECK(at("<<a<a>", 0) == "3+3=1");
  CHECK(at("<a", 0) == "none");
  CHECK(at("", 0) == "none");
  CHECK_FALSE(SpecialTokens().find("<a>", 0).has_value());
}

}  // namespace
}  // namespace brigade::model
