// SPDX-License-Identifier: Apache-2.0
#include "router/core/stop_matcher.h"

#include <doctest/doctest.h>

#include "common/base/random.h"

namespace brigade::router {

TEST_CASE("text that may begin a stop string is held back until that is certain") {
  StopMatcher matcher({"STOP", "\n\n"});
  CHECK_EQ(matcher.push("hello S", true), "hello ");
  CHECK_EQ(matcher.push("T", true), "");
  CHECK_EQ(matcher.push("ART\n", true), "START");
  CHECK_EQ(matcher.push("x", true), "\nx");
  CHECK_EQ(matcher.push("\nSTOP!", true), "\n");
  REQUIRE(matcher.matched().has_value());
  CHECK_EQ(*matcher.matched(), "STOP");
  CHECK_EQ(matcher.flush(), "");
}

TEST_CASE("the stop string that ends first wins, and of those the longest") {
  StopMatcher first({"bcd", "c"});
  CHECK_EQ(first.push("abcd", true), "ab");
  CHECK_EQ(*first.matched(), "c");
  StopMatcher longest({"c", "abc"});
  CHECK_EQ(longest.push("xabc", true), "x");
  CHECK_EQ(*longest.matched(), "abc");
}

TEST_CASE("before stops are allowed a stop string counts only when it ends later") {
  StopMatcher matcher({"ab"});
  CHECK_EQ(matcher.push("xab", false), "xab");
  CHECK_EQ(matcher.push("a", false), "");
  CHECK_EQ(matcher.push("b", true), "");
  CHECK(matcher.matched().has_value());
}

TEST_CASE("what comes out does not depend on how the text was cut") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random_bits(seed, draw++) % bound; };
    const auto random_text = [&](std::uint64_t length) {
      std::string text;
      for (std::uint64_t i = 0; i < length; ++i)
        text += static_cast<char>('a' + below(2));
      return text;
    };
    std::vector<std::string> stops;
    for (std::uint64_t i = 1 + below(3); i > 0; --i)
      stops.push_back(random_text(2 + below(6)));
    const std::string text = random_text(40);
    StopMatcher whole(stops);
    std::string expected = whole.push(text, true);
    if (!whole.matched()) expected += whole.flush();
    StopMatcher pieces(stops);
    std::string out;
    for (std::size_t pos = 0; pos < text.size() && !pieces.matched();) {
      const std::size_t length = 1 + below(4);
      out += pieces.push(text.substr(pos, length), true);
      pos += length;
    }
    if (!pieces.matched()) out += pieces.flush();
    CHECK_EQ(out, expected);
    CHECK(pieces.matched() == whole.matched());
    for (const std::string& stop : stops)
      CHECK_EQ(out.find(stop), std::string::npos);
  }
}

TEST_CASE("a stop string may be part of the output, whatever pieces it comes in") {
  for (std::size_t length = 1; length <= 7; ++length) {
    StopMatcher matcher({"END"}, /*include=*/true);
    const std::string text = "the ENx ENDing";
    std::string out;
    for (std::size_t at = 0; at < text.size() && !matcher.matched(); at += length)
      out += matcher.push(text.substr(at, length), true);
    CHECK_EQ(out, "the ENx END");
    CHECK(matcher.matched() == "END");
  }
}

}  // namespace brigade::router
