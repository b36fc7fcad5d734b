// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <vector>

#include "common/model/tokenizer.h"
#include "tests/common/model/json_values.h"

namespace brigade::model {
namespace {

/// A vocabulary of given byte strings; nothing else of a tokenizer is asked for here.
class Pieces final : public Tokenizer {
 public:
  explicit Pieces(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  void encode(std::string_view, bool, std::vector<std::int32_t>&) const override { FAIL("called"); }
  std::string_view token_bytes(std::int32_t id, bool) const override {
    return pieces_[static_cast<std::size_t>(id)];
  }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(pieces_.size()); }
  bool is_special(std::int32_t) const override { return false; }
  std::optional<std::int32_t> find(std::string_view) const override { return {}; }
  std::optional<std::int32_t> bos_id() const override { return {}; }
  std::optional<std::int32_t> eos_id() const override { return {}; }
  std::span<const std::int32_t> end_ids() const override { return {}; }
  bool add_bos() const override { return false; }

 private:
  std::vector<std::string> pieces_;
};

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

/// Streams the pieces in order and checks that only whole characters come out.
std::string stream(const std::vector<std::string>& pieces) {
  StreamingDetokenizer detokenizer(std::make_shared<Pieces>(pieces));
  std::string text;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(pieces.size()); ++id) {
    const std::string part = detokenizer.push(id);
    REQUIRE(is_valid_utf8(part));
    text += part;
  }
  return text + detokenizer.finish();
}

TEST_CASE("bytes cut at every place stream to the text that Python decodes with replacement") {
  const auto golden = boost::json::parse(read_file("tests/golden/utf8.json"));
  REQUIRE(golden.at("magic").as_string() == "brigade-utf8-golden");
  for (const auto& test_case : golden.at("cases").as_array()) {
    const std::string hex(test_case.at(0).as_string());
    const std::string expected(test_case.at(1).as_string());
    const std::string bytes = from_hex(hex);
    CAPTURE(hex);
    std::vector<std::string> single;
    for (const char c : bytes)
      single.emplace_back(1, c);
    CHECK(stream(single) == expected);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      CHECK(stream({bytes.substr(0, cut), bytes.substr(cut)}) == expected);
      for (std::size_t second = cut; second <= bytes.size(); second += 3) {
        CHECK(stream({bytes.substr(0, cut), bytes.substr(cut, second - cut),
                      bytes.substr(second)}) == expected);
      }
    }
    const Pieces whole({bytes});
    CHECK(whole.decode(std::vector<std::int32_t>{0}, false) == expected);
  }
}

TEST_CASE("what can no longer become a character is given out at once, what can is held") {
  StreamingDetokenizer detokenizer(
      std::make_shared<Pieces>(std::vector<std::string>{"\xf0\x9f", "\x94\xa5", "\xe4", "a"}));
  CHECK(detokenizer.push(0).empty());
  CHECK(detokenizer.push(1) == "\xf0\x9f\x94\xa5");
  CHECK(detokenizer.push(2).empty());
  CHECK(detokenizer.push(3) ==
        "\xef\xbf\xbd"
        "a");
  CHECK(detokenizer.push(0).empty());
  CHECK(detokenizer.finish() == "\xef\xbf\xbd");
  CHECK(detokenizer.finish().empty());
}

}  // namespace
}  // namespace brigade::model
