// SPDX-License-Identifier: Apache-2.0
// Text to ids and back: any text comes back, ordinary text has no control token, and ids depend on
// trust alone, not on where segments are cut. A first byte of 0xff makes the rest a vocabulary.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/model/chat_template.h"
#include "tests/fuzz/fuzz_vocabulary.h"

namespace brigade::fuzz {
namespace {

using Ids = std::vector<std::int32_t>;

/// To SentencePiece its sign for a space is one.
std::string expected_text(const std::string& text, bool is_sentencepiece) {
  constexpr std::string_view kSign = "\u2581";
  std::string valid;
  model::append_lossy_utf8(text, /*final=*/true, valid);
  std::string out;
  for (std::size_t i = 0; i < valid.size();) {
    const bool is_sign = is_sentencepiece && std::string_view(valid).substr(i).starts_with(kSign);
    out += is_sign ? ' ' : valid[i];
    i += is_sign ? kSign.size() : 1;
  }
  return out;
}

void check_text(std::uint8_t choice, const std::string& text) {
  const auto tokenizer = tokenizer_of(choice);
  const bool is_sentencepiece = choice % 10 >= 8;
  const std::string expected = expected_text(text, is_sentencepiece);
  for (const bool special : {false, true}) {
    Ids ids;
    tokenizer->encode(text, special, ids);
    INVARIANT(tokenizer->decode(ids, /*special=*/true) == expected) << "text is not what it was";
    for (const std::int32_t id : ids) {
      INVARIANT(id >= 0 && id < tokenizer->vocab_size()) << id;
      INVARIANT(special || id >= 5) << "control token " << id << " from ordinary text";
    }
    // The same text in two segments of one trust.
    const std::string valid = expected_text(text, /*is_sentencepiece=*/false);
    std::size_t cut = valid.size() / 2;
    while (cut < valid.size() && (static_cast<unsigned char>(valid[cut]) & 0xc0) == 0x80)
      ++cut;
    Ids again;
    tokenizer->encode_prompt(std::vector<model::PromptSegment>{{valid.substr(0, cut), special},
                                                               {valid.substr(cut), special}},
                             again);
    INVARIANT(ids == again) << "a cut between segments shows";
  }
}

/// A map of characters whose trie is the first half of `bytes`, and its texts the rest.
std::string charsmap_of(const std::string& bytes) {
  const std::size_t trie_bytes = bytes.size() / 8 * 4;
  std::string blob;
  for (int shift = 0; shift < 32; shift += 8)
    blob += static_cast<char>(trie_bytes >> shift);
  return blob + bytes + '\0';
}

/// Lines are tokens, the type of each from its first byte; merges are lines of two words.
void check_vocabulary(const std::string& text) {
  model::TokenizerData data;
  data.model = std::array{"gpt2", "llama", "t5"}[text.size() % 3];
  data.pre = "llama-bpe";
  if (text.size() >= 8) data.charsmap = charsmap_of(text);
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find(' ') != std::string::npos && data.model == "gpt2") {
      data.merges.push_back(line);
    } else if (!line.empty()) {
      const auto first = static_cast<unsigned char>(line[0]);
      add_token(data, std::string_view(line).substr(1), static_cast<model::TokenType>(first % 8),
                first / 8);
    }
  }
  data.bos_id = static_cast<std::int64_t>(data.tokens.size()) - 1;
  const auto tokenizer = model::make_tokenizer(data);
  if (!tokenizer.ok()) return;
  for (const bool special : {false, true}) {
    Ids ids;
    (*tokenizer)->encode(text, special, ids);
    static_cast<void>((*tokenizer)->decode(ids, special));
    for (const std::int32_t id : ids) {
      INVARIANT(id >= 0 && id < (*tokenizer)->vocab_size()) << id;
      INVARIANT(special || data.types[static_cast<std::size_t>(id)] !=
                               static_cast<std::int64_t>(model::TokenType::kControl))
          << "control token " << id << " from ordinary text";
    }
  }
}

}  // namespace
}  // namespace brigade::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if (bytes[0] == 0xff) {
    brigade::fuzz::check_vocabulary(text);
  } else {
    brigade::fuzz::check_text(bytes[0], text);
  }
  return 0;
}
