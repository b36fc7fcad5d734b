// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/model/tokenizer_data.h"
#include "common/model/utf8.h"

// Small vocabularies in which every byte has a token, so that every text comes back.
namespace brigade::fuzz {

inline void add_token(model::TokenizerData& data, std::string_view text, model::TokenType type,
                      double score = 0) {
  data.tokens.emplace_back(text);
  data.types.push_back(static_cast<std::int64_t>(type));
  data.scores.push_back(score);
}

/// Control tokens, and user-defined ones of letters and of white space.
inline model::TokenizerData special_tokens() {
  model::TokenizerData data;
  for (const std::string_view text : {"<unk>", "<s>", "</s>", "<|im_end|>", "<|"})
    add_token(data, text, model::TokenType::kControl);
  for (const std::string_view text : {"\n\n", "  ", "<tool>"})
    add_token(data, text, model::TokenType::kUserDefined);
  data.bos_id = 1;
  data.eos_id = 2;
  data.unknown_id = 0;
  return data;
}

inline model::TokenizerData byte_bpe_data(std::string_view pre) {
  model::TokenizerData data = special_tokens();
  data.model = "gpt2";
  data.pre = pre;
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    std::string text;
    model::append_utf8(prints ? byte : next++, text);
    add_token(data, text, model::TokenType::kNormal);
  }
  for (const std::string_view merge : {"a a", "aa aa", "\u0120 a", "< |", "a b", "\u00c3 \u00a9",
                                       "i m", "_ e", "1 2", "\u010a \u010a", "s >", "< s"}) {
    std::string merged(merge);
    merged.erase(merged.find(' '), 1);
    data.merges.emplace_back(merge);
    // One of them makes a control token, which text must not do.
    if (merged != "<|") add_token(data, merged, model::TokenType::kNormal);
  }
  return data;
}

inline model::TokenizerData sentencepiece_data(bool space_prefix) {
  model::TokenizerData data = special_tokens();
  data.model = "llama";
  data.add_space_prefix = space_prefix;
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    add_token(data, std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + '>',
              model::TokenType::kByte);
  }
  double score = 0;
  for (const std::string_view piece :
       {"aa", "aaaa", "\u2581a", "ab", "<s", "s>", "\u2581\u2581\u2581", "a\u2581", "\u00e9\u00e9",
        "a", "b", "\u2581", "<", "s", ">", "|", "\u00e9"}) {
    add_token(data, piece, model::TokenType::kNormal, --score);
  }
  return data;
}

/// One of every algorithm and pre-tokenizer.
inline std::shared_ptr<const model::Tokenizer> tokenizer_of(std::uint8_t choice) {
  using Tokenizers = std::array<std::shared_ptr<const model::Tokenizer>, 10>;
  static const Tokenizers kTokenizers = [] {
    Tokenizers made;
    std::size_t i = 0;
    for (const std::string_view pre :
         {"smollm", "gpt-2", "llama-bpe", "qwen2", "qwen35", "tekken", "gpt-4o", "default"}) {
      made[i++] = model::make_tokenizer(byte_bpe_data(pre)).value();
    }
    made[i++] = model::make_tokenizer(sentencepiece_data(/*space_prefix=*/true)).value();
    made[i++] = model::make_tokenizer(sentencepiece_data(/*space_prefix=*/false)).value();
    return made;
  }();
  return kTokenizers[choice % kTokenizers.size()];
}

}  // namespace brigade::fuzz
