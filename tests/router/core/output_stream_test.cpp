// SPDX-License-Identifier: Apache-2.0
#include "router/core/output_stream.h"

#include <doctest/doctest.h>

#include "tests/router/core/support/fake_model.h"

namespace brigade::router {
namespace {

using testing::FakeTokenizer;
using wire::FinishReason;

OutputStream make_stream(const wire::GenerationParams& params) {
  return OutputStream(std::make_shared<FakeTokenizer>(), params);
}

wire::GenerationParams params_of(std::uint32_t max_tokens) {
  wire::GenerationParams params;
  params.max_tokens = max_tokens;
  return params;
}

constexpr std::int32_t letter(char c) {
  return FakeTokenizer::kA + (c - 'a');
}

}  // namespace

TEST_CASE("the space that a tokenizer puts before text is gone after a special token alone") {
  const auto first_text = [](bool adds_space_prefix, std::int32_t last_prompt_token) {
    OutputStream stream(std::make_shared<FakeTokenizer>(adds_space_prefix), params_of(10),
                        last_prompt_token);
    return stream.push(FakeTokenizer::kSpace).text + stream.push(FakeTokenizer::kSpace).text;
  };
  CHECK(first_text(true, FakeTokenizer::kSpecial) == " ");
  CHECK(first_text(true, letter('a')) == "  ");
  CHECK(first_text(false, FakeTokenizer::kSpecial) == "  ");
}

TEST_CASE("an end token ends the output and gives no text") {
  OutputStream stream = make_stream(params_of(10));
  CHECK_EQ(stream.push(letter('h')).text, "h");
  const OutputStream::Piece last = stream.push(FakeTokenizer::kEnd);
  CHECK(last.finish == FinishReason::kStop);
  CHECK_EQ(last.text, "");
  CHECK_EQ(last.stop_reason, "");
}

TEST_CASE("ignore_eos goes on to max_tokens") {
  wire::GenerationParams params = params_of(3);
  params.ignore_eos = true;
  OutputStream stream = make_stream(params);
  CHECK(stream.push(FakeTokenizer::kEnd).finish == FinishReason::kNone);
  CHECK(stream.push(FakeTokenizer::kEnd).finish == FinishReason::kNone);
  CHECK(stream.push(letter('x')).finish == FinishReason::kLength);
}

TEST_CASE("a stop token ends the output, is named, and is not part of the text") {
  wire::GenerationParams params = params_of(9);
  params.stop_token_ids = {letter('z'), letter('q')};
  OutputStream stream = make_stream(params);
  CHECK_EQ(stream.push(letter('a')).text, "a");
  const OutputStream::Piece last = stream.push(letter('q'));
  CHECK(last.finish == FinishReason::kStop);
  CHECK_EQ(last.stop_reason, std::to_string(letter('q')));
  CHECK_EQ(last.text, "");
}

TEST_CASE("with include_stop_str what ended the output is part of its text") {
  wire::GenerationParams params = params_of(9);
  params.include_stop_str = true;
  params.stop_token_ids = {letter('q')};
  params.stop = {"xyz"};
  OutputStream by_token = make_stream(params);
  CHECK_EQ(by_token.push(letter('q')).text, "q");
  OutputStream by_string = make_stream(params);
  CHECK_EQ(by_string.push(letter('x')).text, "");
  CHECK_EQ(by_string.push(letter('y')).text, "");
  CHECK_EQ(by_string.push(letter('z')).text, "xyz");
  // An end token is a special one: it has a text only where these show.
  OutputStream hidden = make_stream(params);
  CHECK_EQ(hidden.push(FakeTokenizer::kEnd).text, "");
  params.keep_special_tokens = true;
  OutputStream shown = make_stream(params);
  const std::string end(FakeTokenizer().token_bytes(FakeTokenizer::kEnd, true));
  REQUIRE_FALSE(end.empty());
  CHECK_EQ(shown.push(FakeTokenizer::kEnd).text, end);
}

TEST_CASE("special tokens show in the text only where they are kept, an end token not") {
  const std::string special(FakeTokenizer().token_bytes(FakeTokenizer::kSpecial, true));
  REQUIRE_FALSE(special.empty());
  wire::GenerationParams params = params_of(9);
  OutputStream skipping = make_stream(params);
  CHECK_EQ(skipping.push(FakeTokenizer::kSpecial).text, "");
  params.keep_special_tokens = true;
  OutputStream keeping = make_stream(params);
  CHECK_EQ(keeping.push(FakeTokenizer::kSpecial).text, special);
  CHECK_EQ(keeping.push(FakeTokenizer::kEnd).text, "");
}

TEST_CASE("what was held back comes out when the length ends the output") {
  wire::GenerationParams params = params_of(2);
  params.stop = {"abc"};
  OutputStream stream = make_stream(params);
  CHECK_EQ(stream.push(letter('a')).text, "");
  const OutputStream::Piece last = stream.push(letter('b'));
  CHECK(last.finish == FinishReason::kLength);
  CHECK_EQ(last.text, "ab");
}

TEST_CASE("a stop string found with the last token counts as a stop") {
  wire::GenerationParams params = params_of(2);
  params.stop = {"ab"};
  OutputStream stream = make_stream(params);
  CHECK_EQ(stream.push(letter('a')).text, "");
  const OutputStream::Piece last = stream.push(letter('b'));
  CHECK(last.finish == FinishReason::kStop);
  CHECK_EQ(last.stop_reason, "ab");
}

TEST_CASE("min_tokens holds off stop strings and stop tokens") {
  wire::GenerationParams params = params_of(10);
  params.min_tokens = 2;
  params.stop = {"ab"};
  params.stop_token_ids = {letter('b')};
  OutputStream stream = make_stream(params);
  CHECK(stream.push(letter('a')).finish == FinishReason::kNone);
  CHECK(stream.push(letter('b')).finish == FinishReason::kNone);
  CHECK(stream.push(letter('b')).finish == FinishReason::kStop);
  CHECK(stream.banned_tokens() == std::vector<std::int32_t>{FakeTokenizer::kEnd, letter('b')});
}

TEST_CASE("a character that comes in two tokens comes out whole") {
  OutputStream stream = make_stream(params_of(10));
  CHECK_EQ(stream.push(FakeTokenizer::kFirstByte).text, "");
  CHECK_EQ(stream.push(FakeTokenizer::kSecondByte).text, "\xc3\xa9");
  CHECK_EQ(stream.push(FakeTokenizer::kFirstByte).text, "");
  CHECK_EQ(stream.flush(), "\xef\xbf\xbd");
}

}  // namespace brigade::router
