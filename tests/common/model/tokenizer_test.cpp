// SPDX-License-Identifier: Apache-2.0
#include "common/model/tokenizer.h"

#include <doctest/doctest.h>

#include "common/model/chat_template.h"
#include "common/model/gguf.h"
#include "common/model/tokenizer_data.h"
#include "tests/common/model/tokenizer_checks.h"
#include "tests/support/gguf_builder.h"

namespace brigade::model {
namespace {

using Ids = std::vector<std::int32_t>;

/// 0 <|end|>, 1 <|start|>, 2 <tool> (user-defined), then bytes and merges.
TokenizerData tiny_data() {
  TokenizerData data;
  data.model = "gpt2";
  data.pre = "smollm";
  data.tokens = {"<|end|>", "<|start|>", "<tool>"};
  data.types = {3, 3, 4};
  const auto add = [&](std::string_view token) {
    data.tokens.emplace_back(token);
    data.types.push_back(1);
  };
  for (const char c : std::string_view("abcdehlnorst<|>!1234"))
    add(std::string(1, c));
  add("\u0120");  // space
  add("\u010a");  // newline
  add("\u00c3");  // byte c3
  add("\u00a9");  // byte a9
  for (const std::string_view merge :
       {"h e", "l l", "he ll", "hell o", "\u0120 hello", "\u00c3 \u00a9"}) {
    data.merges.emplace_back(merge);
    std::string merged(merge);
    merged.erase(merged.find(' '), 1);
    add(merged);
  }
  data.bos_id = 1;
  data.eos_id = 0;
  return data;
}

std::shared_ptr<const Tokenizer> tiny() {
  return make(tiny_data());
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, bool parse_special = false) {
  Ids ids;
  tokenizer.encode(text, parse_special, ids);
  return ids;
}

/// Tokens joined by |, special ones by their text.
std::string spell(const Tokenizer& tokenizer, const Ids& ids) {
  std::string out;
  for (const std::int32_t id : ids) {
    out += (out.empty() ? "" : "|") + std::string(tokenizer.token_bytes(id, /*special=*/true));
  }
  return out;
}

TEST_CASE("text becomes merged tokens and comes back") {
  const auto tokenizer = tiny();
  CHECK(spell(*tokenizer, encode(*tokenizer, "hello hello 12\n")) == "hello| hello| |1|2|\n");
  CHECK(spell(*tokenizer, encode(*tokenizer, "hellohell!")) == "hello|hell|!");
  CHECK(spell(*tokenizer, encode(*tokenizer, "\u00e9")) == "\u00e9");
  for (const char* text : {"", "hello", " hello  hello\n\n1234 \u00e9!", "<|end|>hello<|"}) {
    CHECK(tokenizer->decode(encode(*tokenizer, text), false) == text);
  }
}

TEST_CASE("control tokens count only when special tokens are parsed, user-defined ones always") {
  const auto tokenizer = tiny();
  CHECK(encode(*tokenizer, "<|end|>", true) == Ids{0});
  CHECK(spell(*tokenizer, encode(*tokenizer, "<|end|>")) == "<|||e|n|d|||>");
  CHECK(encode(*tokenizer, "<tool>") == Ids{2});
  CHECK(encode(*tokenizer, "<tool>", true) == Ids{2});
  CHECK(spell(*tokenizer, encode(*tokenizer, "a<|start|>hello<|end|><tool><|end", true)) ==
        "a|<|start|>|hello|<|end|>|<tool>|<|||e|n|d");
}

TEST_CASE("control tokens are left out of decoded text unless they are asked for") {
  const auto tokenizer = tiny();
  const Ids ids = encode(*tokenizer, "<|start|>hello<tool><|end|>", true);
  CHECK(tokenizer->decode(ids, false) == "hello<tool>");
  CHECK(tokenizer->decode(ids, true) == "<|start|>hello<tool><|end|>");
  CHECK(tokenizer->token_bytes(-1, true).empty());
  CHECK(tokenizer->token_bytes(tokenizer->vocab_size(), true).empty());
}

TEST_CASE("a prompt is encoded as one text, with special tokens where it is trusted") {
  const auto tokenizer = tiny();
  const auto prompt = [&](const std::vector<PromptSegment>& segments) {
    Ids ids;
    tokenizer->encode_prompt(segments, ids);
    return spell(*tokenizer, ids);
  };
  CHECK(prompt({{"<|start|>", true}, {"hello<|end|>", false}, {"<|end|>", true}}) ==
        "<|start|>|hello|<|||e|n|d|||>|<|end|>");
  // The space of the template and the word of the message are one piece, as they would be in one
  // string.
  CHECK(prompt({{"a ", true}, {"hello", false}}) == "a| hello");
  CHECK(prompt({{"<|st", true}, {"art|>", true}}) == "<|start|>");
  CHECK(prompt({{"<|st", true}, {"art|>", false}}) == "<|||s|t|a|r|t|||>");
  CHECK(prompt({{"<|st", false}, {"art|>", true}}) == "<|||s|t|a|r|t|||>");
  CHECK(prompt({{"<tool>", false}}) == "<tool>");
  CHECK(prompt({}).empty());
}

TEST_CASE("what a tokenizer says of itself") {
  const auto tokenizer = tiny();
  CHECK(tokenizer->vocab_size() == static_cast<std::int32_t>(tiny_data().tokens.size()));
  CHECK(tokenizer->bos_id() == 1);
  CHECK(tokenizer->eos_id() == 0);
  CHECK_FALSE(tokenizer->add_bos());
  CHECK(tokenizer->is_special(0));
  CHECK(tokenizer->is_special(2));
  CHECK_FALSE(tokenizer->is_special(3));
  CHECK_FALSE(tokenizer->is_special(-1));
  CHECK(tokenizer->find("<|end|>") == 0);
  CHECK(tokenizer->find(" hello") == encode(*tokenizer, " hello")[0]);
  CHECK_FALSE(tokenizer->find("hello!").has_value());
  CHECK(tokenizer->end_ids().size() == 1);
  TokenizerData data = tiny_data();
  data.eot_id = 2;
  data.eom_id = 0;
  data.add_bos = true;
  const auto other = make_tokenizer(data);
  REQUIRE(other.ok());
  CHECK((*other)->add_bos());
  CHECK(Ids((*other)->end_ids().begin(), (*other)->end_ids().end()) == Ids{0, 2});
}

TEST_CASE("invalid UTF-8 is encoded as its repaired text instead of reaching the pattern engine") {
  const auto tokenizer = tiny();
  CHECK(spell(*tokenizer, encode(*tokenizer, "hello\xff\xe4")) == "hello");
}

TEST_CASE("merges never make a control token of ordinary text") {
  TokenizerData data = tiny_data();
  data.tokens.emplace_back("ab");
  data.types.push_back(3);
  data.merges.emplace_back("a b");
  const auto tokenizer = make_tokenizer(data);
  REQUIRE(tokenizer.ok());
  CHECK(spell(**tokenizer, encode(**tokenizer, "ab")) == "a|b");
  CHECK(spell(**tokenizer, encode(**tokenizer, "ab", /*parse_special=*/true)) == "ab");
}

TEST_CASE("a piece that is a token is that token where the pre-tokenizer says so") {
  TokenizerData data = tiny_data();
  data.tokens.emplace_back("not");  // no merge leads to it
  data.types.push_back(1);
  data.tokens.emplace_back("|>");
  data.types.push_back(3);
  for (const auto& [pre, expected] : {std::pair{"qwen2", "n|o|t"}, std::pair{"llama-bpe", "not"}}) {
    data.pre = pre;
    const auto tokenizer = make_tokenizer(data);
    REQUIRE(tokenizer.ok());
    CHECK(spell(**tokenizer, encode(**tokenizer, "not")) == expected);
    CHECK(spell(**tokenizer, encode(**tokenizer, "|>")) == "||>");
  }
}

TEST_CASE("llama-bpe adds BOS unless the file says otherwise") {
  TokenizerData data = tiny_data();
  data.pre = "llama-bpe";
  CHECK((*make_tokenizer(data))->add_bos());
  data.add_bos = false;
  CHECK_FALSE((*make_tokenizer(data))->add_bos());
}

TEST_CASE("control tokens with a text that ends a turn in known models end a generation") {
  TokenizerData data = tiny_data();
  data.tokens[1] = "<|eot_id|>";
  data.tokens[2] = "<|im_end|>";
  const auto tokenizer = make_tokenizer(data);
  REQUIRE(tokenizer.ok());
  CHECK(Ids((*tokenizer)->end_ids().begin(), (*tokenizer)->end_ids().end()) == Ids{0, 1, 2});
}

TEST_CASE("bad metadata is an error that names the key") {
  using D = TokenizerData;
  CHECK(error_after(tiny_data(), [](D& d) { d.model = "bert"; }) ==
        R"(tokenizer.ggml.model is "bert", and only "gpt2", "llama" and "t5" can be read)");
  CHECK(error_after(tiny_data(), [](D& d) { d.pre = "zz"; }) ==
        "tokenizer.ggml.pre: unknown pre-tokenizer \"zz\"; known: smollm gpt-2 llama-bpe "
        "dbrx qwen2 qwen35 tekken gpt-4o deepseek-v3 default");
  CHECK(error_after(tiny_data(), [](D& d) { d.tokens.clear(); }) ==
        "tokenizer.ggml.tokens is empty");
  CHECK(error_after(tiny_data(), [](D& d) { d.tokens[4] = "a"; }) ==
        "tokenizer.ggml.tokens[4] \"a\" is also [3]");
  CHECK(error_after(tiny_data(), [](D& d) { d.tokens[0] = ""; }) ==
        "tokenizer.ggml.tokens[0] is special and 0 bytes long, not 1 to 256");
  CHECK(error_after(tiny_data(), [](D& d) { d.tokens[0] = std::string(257, 'x'); }) ==
        "tokenizer.ggml.tokens[0] is special and 257 bytes long, not 1 to 256");
  CHECK(error_after(tiny_data(), [](D& d) { d.types.pop_back(); }) ==
        "tokenizer.ggml.token_type has 32 entries for 33 tokens");
  CHECK(error_after(tiny_data(), [](D& d) { d.types[5] = 7; }) ==
        "tokenizer.ggml.token_type[5] is 7, not 1 to 6");
  CHECK(error_after(tiny_data(), [](D& d) { d.types[5] = 0; }) ==
        "tokenizer.ggml.token_type[5] is 0, not 1 to 6");
  CHECK(error_after(tiny_data(), [](D& d) { d.merges[1] = "ll"; }) ==
        "tokenizer.ggml.merges[1] \"ll\" is not two tokens");
  CHECK(error_after(tiny_data(), [](D& d) { d.merges[1] = "l "; }) ==
        "tokenizer.ggml.merges[1] \"l \" is not two tokens");
  CHECK(error_after(tiny_data(), [](D& d) { d.merges[1] = ""; }) ==
        "tokenizer.ggml.merges[1] \"\" is not two tokens");
  CHECK(error_after(tiny_data(), [](D& d) { d.merges[1] = "l z"; }) ==
        "tokenizer.ggml.merges[1] \"l z\" names \"z\", which is no token");
  CHECK(error_after(tiny_data(), [](D& d) { d.merges[1] = "l e"; }) ==
        "tokenizer.ggml.merges[1] \"l e\" names \"le\", which is no token");
  CHECK(error_after(tiny_data(), [](D& d) { d.bos_id = 33; }) ==
        "tokenizer.ggml.bos_token_id is 33, outside the 33 tokens");
  CHECK(error_after(tiny_data(), [](D& d) { d.eos_id = -1; }) ==
        "tokenizer.ggml.eos_token_id is -1, outside the 33 tokens");
  CHECK(error_after(tiny_data(), [](D& d) { d.eot_id = std::int64_t{1} << 40; }) ==
        "tokenizer.ggml.eot_token_id is 1099511627776, outside the 33 tokens");
  CHECK(error_after(tiny_data(), [](D& d) { d.types.clear(); }) == "no error");
}

test::GgufBuilder tiny_file(std::string_view without = {}) {
  const TokenizerData data = tiny_data();
  test::GgufBuilder builder;
  const auto wanted = [&](std::string_view key) { return key != without; };
  if (wanted("model")) builder.add_string("tokenizer.ggml.model", data.model);
  if (wanted("pre")) builder.add_string("tokenizer.ggml.pre", data.pre);
  if (wanted("tokens")) builder.add_strings("tokenizer.ggml.tokens", data.tokens);
  if (wanted("merges")) builder.add_strings("tokenizer.ggml.merges", data.merges);
  builder.add_i32s("tokenizer.ggml.token_type", {data.types.begin(), data.types.end()});
  builder.add_u32("tokenizer.ggml.eos_token_id", 0);
  builder.add_bool("tokenizer.ggml.add_bos_token", true);
  if (wanted("bos")) builder.add_u32("tokenizer.ggml.bos_token_id", 1);
  return builder;
}

Result<std::shared_ptr<const Tokenizer>> load(const test::GgufBuilder& builder) {
  const test::TempFile file(builder.build());
  const auto gguf = GgufFile::open(file.path());
  REQUIRE(gguf.ok());
  return Tokenizer::load(**gguf);
}

TEST_CASE("a tokenizer is loaded from the keys of a GGUF file") {
  const auto tokenizer = load(tiny_file());
  REQUIRE(tokenizer.ok());
  CHECK((*tokenizer)->add_bos());
  CHECK((*tokenizer)->bos_id() == 1);
  CHECK(encode(**tokenizer, "<|end|> hello", true) == encode(*tiny(), "<|end|> hello", true));
  // Without a BOS token there is none to add.
  const auto without_bos = load(tiny_file("bos"));
  REQUIRE(without_bos.ok());
  CHECK_FALSE((*without_bos)->add_bos());
}

TEST_CASE("a key that is missing in the file is named") {
  for (const std::string key : {"model", "tokens", "merges"}) {
    const auto tokenizer = load(tiny_file(key));
    CHECK(tokenizer.status().code() == StatusCode::kNotFound);
    CHECK(tokenizer.status().message().find("tokenizer.ggml." + key) != std::string::npos);
  }
  test::GgufBuilder bad = tiny_file("bos");
  bad.add_string("tokenizer.ggml.bos_token_id", "one");
  const auto tokenizer = load(bad);
  CHECK(tokenizer.status().code() == StatusCode::kDataLoss);
  CHECK(tokenizer.status().message().find("tokenizer.ggml.bos_token_id") != std::string::npos);
}

TEST_CASE("a megabyte of anything is encoded in seconds, not hours") {
  const auto tokenizer = tiny();
  check_a_megabyte_of_each(
      *tokenizer, 1, 0,
      {"l", " ", "\u0301", "1", "<|", "<|start|>", "<|star", "hell", "\n", "' ", "\u4e00"});
}

}  // namespace
}  // namespace brigade::model
