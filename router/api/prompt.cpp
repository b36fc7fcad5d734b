// SPDX-License-Identifier: Apache-2.0
#include "router/api/prompt.h"

#include <algorithm>
#include <string>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

void add_bos(const model::Tokenizer& tokenizer, std::vector<std::int32_t>& ids) {
  const auto bos = tokenizer.bos_id();
  if (tokenizer.add_bos() && bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
}

std::string special_text(const model::Tokenizer& tokenizer, std::optional<std::int32_t> id) {
  return id ? std::string(tokenizer.token_bytes(*id, /*special=*/true)) : std::string();
}

/// Collects the plain text between special tokens over the borders of segments, because where a
/// word ends must not depend on who wrote its halves.
class SegmentEncoder {
 public:
  explicit SegmentEncoder(const model::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add_plain(std::string_view text) { plain_ += text; }

  void add_trusted(std::string_view text) {
    std::vector<std::int32_t> ids;
    tokenizer_.encode(text, /*parse_special=*/true, ids);
    if (!spells(ids, text)) {
      // The tokens' bytes are not the text's (a tokenizer that normalises): the segment stands by
      // itself.
      flush();
      ids_.insert(ids_.end(), ids.begin(), ids.end());
      return;
    }
    for (const std::int32_t id : ids) {
      if (tokenizer_.is_special(id)) {
        flush();
        ids_.push_back(id);
      } else {
        plain_ += tokenizer_.token_bytes(id, /*special=*/true);
      }
    }
  }

  std::vector<std::int32_t> finish() {
    flush();
    return std::move(ids_);
  }

 private:
  bool spells(const std::vector<std::int32_t>& ids, std::string_view text) const {
    for (const std::int32_t id : ids) {
      const std::string_view bytes = tokenizer_.token_bytes(id, /*special=*/true);
      if (!text.starts_with(bytes)) return false;
      text.remove_prefix(bytes.size());
    }
    return text.empty();
  }

  void flush() {
    if (!plain_.empty()) tokenizer_.encode(plain_, /*parse_special=*/false, ids_);
    plain_.clear();
  }

  const model::Tokenizer& tokenizer_;
  std::string plain_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

Result<std::vector<std::int32_t>> prompt_from_text(const ServedModel& model, std::string_view text,
                                                   bool add_special_tokens) {
  std::vector<std::int32_t> ids;
  model.tokenizer->encode(text, /*parse_special=*/true, ids);
  if (add_special_tokens) add_bos(*model.tokenizer, ids);
  return ids;
}

Result<std::vector<std::int32_t>> prompt_from_ids(const ServedModel& model,
                                                  std::vector<std::int32_t> ids) {
  const std::int32_t vocab_size = model.tokenizer->vocab_size();
  const auto bad = std::find_if(ids.begin(), ids.end(),
                                [&](std::int32_t id) { return id < 0 || id >= vocab_size; });
  if (bad != ids.end()) {
    return invalid_argument(
        str_cat("token id ", *bad, " at ", bad - ids.begin(), " is not in [0, ", vocab_size, ")"));
  }
  return ids;
}

std::vector<std::int32_t> encode_segments(const model::Tokenizer& tokenizer,
                                          const std::vector<model::PromptSegment>& segments) {
  SegmentEncoder encoder(tokenizer);
  for (const model::PromptSegment& segment : segments) {
    if (segment.trusted) {
      encoder.add_trusted(segment.text);
    } else {
      encoder.add_plain(segment.text);
    }
  }
  return encoder.finish();
}

Result<std::vector<std::int32_t>> prompt_from_messages(
    const ServedModel& model, const std::vector<model::ChatMessage>& messages,
    const ChatPromptOptions& options) {
  if (model.chat_template == nullptr) {
    return invalid_argument(
        str_cat("the model ", quoted(model.name), " has no chat template: use completions"));
  }
  const model::Tokenizer& tokenizer = *model.tokenizer;
  ASSIGN_OR_RETURN(
      const std::vector<model::PromptSegment> segments,
      model.chat_template->render({.messages = messages,
                                   .add_generation_prompt = options.add_generation_prompt,
                                   .bos_token = special_text(tokenizer, tokenizer.bos_id()),
                                   .eos_token = special_text(tokenizer, tokenizer.eos_id())}));
  std::vector<std::int32_t> ids = encode_segments(tokenizer, segments);
  if (options.add_special_tokens) add_bos(tokenizer, ids);
  return ids;
}

}  // namespace brigade::router
