// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/text.h"

#include <doctest/doctest.h>

namespace brigade::model::jinja {
namespace {

/// The text with untrusted bytes as dots.
std::string marks(const Text& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i)
    out += text.trusted_at(i) ? text.str()[i] : '.';
  return out;
}

TEST_CASE("marks follow the bytes through appends and slices") {
  Text text("ab", true);
  text.append("cd", false);
  text.append("", true);
  text.append("e", false);
  text.append("fg", true);
  CHECK(text.str() == "abcdefg");
  CHECK(marks(text) == "ab...fg");
  CHECK(text.runs().size() == 3);
  for (std::size_t begin = 0; begin <= text.size(); ++begin) {
    for (std::size_t end = begin; end <= text.size(); ++end) {
      const Text part = text.slice(begin, end);
      CHECK(part.str() == text.str().substr(begin, end - begin));
      CHECK(marks(part) == marks(text).substr(begin, end - begin));
    }
  }
}

TEST_CASE("neighbours of one origin become one run") {
  Text text("a", true);
  text.append(Text("b", true));
  text.append(Text("c", false));
  text.append(Text("d", false));
  CHECK(text.runs().size() == 2);
  CHECK(text.runs()[0].end == 2);
  CHECK(text.runs()[1].end == 4);
}

}  // namespace
}  // namespace brigade::model::jinja
