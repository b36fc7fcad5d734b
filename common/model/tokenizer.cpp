// SPDX-License-Identifier: Apache-2.0
#include "common/model/tokenizer.h"

#include <utility>

#include "common/model/chat_template.h"
#include "common/model/utf8.h"

namespace brigade::model {

void Tokenizer::encode_prompt(std::span<const PromptSegment> segments,
                              std::vector<std::int32_t>& ids) const {
  for (const PromptSegment& segment : segments)
    encode(segment.text, segment.trusted, ids);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool special) const {
  std::string bytes;
  for (const std::int32_t id : ids)
    bytes += token_bytes(id, special);
  std::string text;
  append_lossy_utf8(bytes, /*final=*/true, text);
  return text;
}

StreamingDetokenizer::StreamingDetokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool special)
    : tokenizer_(std::move(tokenizer)), special_(special) {}

std::string StreamingDetokenizer::push(std::int32_t id) {
  held_ += tokenizer_->token_bytes(id, special_);
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

}  // namespace brigade::model
