// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "router/api/http/json_write.h"

using namespace brigade;
using namespace brigade::router;

namespace {

std::string written(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  const auto result = parse_json(text, limits);
  return result.ok() ? "" : result.status().message();
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("numbers keep their kind") {
  const JsonValue value =
      parse_json(R"({"a":1,"b":-9223372036854775808,"c":18446744073709551615,"d":1.0,"e":1e3})")
          .value();
  CHECK(std::get<std::int64_t>(value.find("a")->data) == 1);
  CHECK(std::get<std::int64_t>(value.find("b")->data) == std::numeric_limits<std::int64_t>::min());
  CHECK(std::get<std::uint64_t>(value.find("c")->data) ==
        std::numeric_limits<std::uint64_t>::max());
  CHECK(std::get<double>(value.find("d")->data) == 1.0);
  CHECK(std::get<double>(value.find("e")->data) == 1000.0);
}

TEST_CASE("values nest and strings are unescaped") {
  const JsonValue value =
      parse_json(R"({"list":[1,[true,null],{"k\n":"v\u00e9\ud83d\ude00"}],"":""})").value();
  const auto& list = *value.find("list")->as_array();
  REQUIRE(list.size() == 3);
  CHECK(list[1].as_array()->at(1).is_null());
  CHECK(*list[2].find("k\n")->as_string() == "v\u00e9\U0001F600");
  CHECK(value.find("")->as_string()->empty());
  CHECK(value.find("missing") == nullptr);
  CHECK(list[0].find("a") == nullptr);
}

TEST_CASE("what is no JSON is refused and says where") {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\":NaN}", "{\"a\":Infinity}", "{\"a\":-Infinity}", "{\"a\":1} x",
        "{'a':1}", "{\"a\":01}", "\"\\ud800\"", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"",
        "nul", "{\"a\" 1}", "\xef\xbb\xbf{}"}) {
    CAPTURE(text);
    CHECK(has(refusal(text), "at byte"));
  }
}

TEST_CASE("a key twice in one object is refused") {
  CHECK(has(refusal(R"({"model":"a","x":1,"model":"b"})"), "\"model\" twice"));
  CHECK(refusal(R"([{"a":1},{"a":2}])").empty());
}

TEST_CASE("depth, values and members are bounded") {
  const std::string deep64 = std::string(64, '[') + std::string(64, ']');
  CHECK(refusal(deep64).empty());
  CHECK(has(refusal("[" + deep64 + "]"), "deep"));
  CHECK_FALSE(refusal(std::string(100'000, '[')).empty());
  CHECK(refusal("[1,2,3]", {.max_values = 4}).empty());
  CHECK(has(refusal("[1,2,3]", {.max_values = 3}), "more than 3 values"));
  CHECK(has(refusal(R"({"a":1,"b":2})", {.max_keys = 1}), "more than 1 members"));
}

TEST_CASE("written strings are valid JSON whatever the bytes") {
  CHECK(written("a\"b\\c\n\r\t\x01\x7f") == R"("a\"b\\c\n\r\t\u0001\u007f")");
  CHECK(written("h\u00e9\U0001F600") == "\"h\u00e9\U0001F600\"");
  CHECK(written("a\xff"
                "b") == "\"a\uFFFDb\"");
  CHECK(written("\xF0\x9F\x98") == "\"\uFFFD\"");              // the maximal part, once
  CHECK(written("\xED\xA0\x80") == "\"\uFFFD\uFFFD\uFFFD\"");  // a surrogate, byte by byte
  for (int byte = 0; byte < 256; ++byte) {
    for (const char* tail : {"", "\x80", "\x80\x80", "z"}) {
      const std::string text = std::string(1, static_cast<char>(byte)) + tail;
      CAPTURE(byte);
      CHECK(parse_json(written(text)).ok());
      CHECK(is_whole_utf8(text) == (*parse_json(written(text)).value().as_string() == text));
    }
  }
}

TEST_CASE("written numbers read back as the same number") {
  for (const float value : {-0.123456789F, 1e-30F, -17.25F, 0.0F, 3.4e38F}) {
    std::string out;
    append_json_number(out, value);
    CHECK(std::stof(out) == value);
    CHECK(parse_json(out).ok());
  }
  std::string out;
  append_json_number(out, -std::numeric_limits<float>::infinity());
  append_json_number(out, std::nanf(""));
  CHECK(out == "-9999.0-9999.0");
}
