// SPDX-License-Identifier: Apache-2.0
#include "common/model/tokenizer.h"

#include <utility>

#include "common/base/strings.h"
#include "common/model/chat_template.h"
#include "common/model/tokenizer_algorithms.h"
#include "common/model/utf8.h"

namespace brigade::model {

void Tokenizer::encode_prompt(std::span<const PromptSegment> segments,
                              std::vector<std::int32_t>& ids) const {
  for (const PromptSegment& segment : segments)
    encode(segment.text, segment.trusted, ids);
}

namespace {

/// Appends the token's bytes, without the space that its tokenizer puts after special tokens.
void append_bytes(const Tokenizer& tokenizer, std::int32_t id, bool special, bool& after_special,
                  std::string& out) {
  std::string_view bytes = tokenizer.token_bytes(id, special);
  const bool is_special = tokenizer.is_special(id);
  const bool has_prefix = after_special && !is_special && tokenizer.adds_space_prefix();
  if (has_prefix && bytes.starts_with(' ')) bytes.remove_prefix(1);
  after_special = is_special;
  out += bytes;
}

}  // namespace

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool special) const {
  std::string bytes;
  bool after_special = true;
  for (const std::int32_t id : ids)
    append_bytes(*this, id, special, after_special, bytes);
  std::string text;
  append_lossy_utf8(bytes, /*final=*/true, text);
  return text;
}

StreamingDetokenizer::StreamingDetokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool special,
                                           std::optional<std::int32_t> previous)
    : tokenizer_(std::move(tokenizer)),
      special_(special),
      after_special_(!previous || tokenizer_->is_special(*previous)) {}

std::string StreamingDetokenizer::push(std::int32_t id) {
  append_bytes(*tokenizer_, id, special_, after_special_, held_);
  std::string text;
  held_.erase(0, append_lossy_utf8(held_, /*final=*/false, text));
  return text;
}

std::string StreamingDetokenizer::finish() {
  std::string text;
  append_lossy_utf8(held_, /*final=*/true, text);
  held_.clear();
  return text;
}

Result<std::shared_ptr<const Tokenizer>> make_tokenizer(const TokenizerData& data) {
  if (data.model == "gpt2") return make_byte_bpe_tokenizer(data);
  if (data.model == "llama") return make_sentencepiece_tokenizer(data);
  if (data.model == "t5") return make_unigram_tokenizer(data);
  return invalid_argument(str_cat("tokenizer.ggml.model is ", quoted(data.model),
                                  R"(, and only "gpt2", "llama" and "t5" can be read)"));
}

}  // namespace brigade::model
