// SPDX-License-Identifier: Apache-2.0
#include "router/api/prompt.h"

#include <algorithm>
#include <ctime>
#include <string>

#include "common/base/strings.h"
#include "router/core/limits.h"

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

/// Cuts a rendered conversation after the last place of `content` (as HF does): where the template
/// has trimmed it, after what is left of it.
Status cut_after(const std::string& content, std::vector<model::PromptSegment>& segments) {
  constexpr std::string_view kBlanks = " \t\n\r\v\f";
  std::string text;
  for (const model::PromptSegment& segment : segments)
    text += segment.text;
  const std::size_t first = content.find_first_not_of(kBlanks);
  const std::string core =
      first == std::string::npos
          ? std::string()
          : content.substr(first, content.find_last_not_of(kBlanks) + 1 - first);
  const std::size_t at = core.empty() ? std::string::npos : text.rfind(core);
  if (at == std::string::npos) {
    return invalid_argument(
        "continue_final_message: the final message's text is not in the rendered conversation");
  }
  const bool whole = text.compare(at, content.size(), content) == 0;
  std::size_t left = at + (whole ? content.size() : core.size());
  std::size_t kept = 0;
  for (; kept < segments.size() && left > 0; ++kept) {
    const std::size_t length = std::min(left, segments[kept].text.size());
    segments[kept].text.resize(length);
    left -= length;
  }
  segments.resize(kept);
  return {};
}

Status check_utf8(std::string_view text, std::string_view what) {
  if (model::is_valid_utf8(text)) return {};
  return invalid_argument(str_cat(what, " is not valid UTF-8"));
}

}  // namespace

Result<std::vector<std::int32_t>> prompt_from_text(const ServedModel& model, std::string_view text,
                                                   const TextPromptOptions& options) {
  RETURN_IF_ERROR(check_utf8(text, "the prompt"));
  std::vector<std::int32_t> ids;
  model.tokenizer->encode(text, options.parse_special, ids);
  if (options.add_special_tokens) {
    add_bos(*model.tokenizer, ids);
    if (model.tokenizer->add_eos()) ids.push_back(*model.tokenizer->eos_id());
  }
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

Result<std::vector<std::int32_t>> prompt_from_messages(
    const ServedModel& model, const std::vector<model::ChatMessage>& messages,
    const ChatPromptOptions& options) {
  if (model.chat_template == nullptr) {
    return invalid_argument(
        str_cat("the model ", quoted(model.name), " has no chat template: use completions"));
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    RETURN_IF_ERROR(check_utf8(messages[i].role, str_cat("the role of message ", i)));
    RETURN_IF_ERROR(check_utf8(messages[i].content, str_cat("the content of message ", i)));
  }
  const model::Tokenizer& tokenizer = *model.tokenizer;
  ASSIGN_OR_RETURN(
      std::vector<model::PromptSegment> segments,
      model.chat_template->render({.messages = messages,
                                   .add_generation_prompt = options.add_generation_prompt,
                                   .bos_token = special_text(tokenizer, tokenizer.bos_id()),
                                   .eos_token = special_text(tokenizer, tokenizer.eos_id()),
                                   .globals = options.globals,
                                   .now_s = std::time(nullptr)}));
  if (options.continue_final_message && !messages.empty()) {
    RETURN_IF_ERROR(cut_after(messages.back().content, segments));
  }
  std::vector<std::int32_t> ids;
  tokenizer.encode_prompt(segments, ids);
  if (options.add_special_tokens) add_bos(tokenizer, ids);
  return ids;
}

std::vector<std::vector<std::int32_t>> bad_word_tokens(const ServedModel& model,
                                                       const std::vector<std::string>& words) {
  std::vector<std::vector<std::int32_t>> out;
  if (words.size() > kMaxBadWords) return out;
  const auto add = [&](std::string_view text) {
    std::vector<std::int32_t> ids;
    if (model::is_valid_utf8(text)) {
      model.tokenizer->encode(text, /*parse_special=*/true, ids);
    }
    if (!ids.empty() && (out.empty() || out.back() != ids)) out.push_back(std::move(ids));
  };
  for (const std::string& word : words) {
    if (word.size() > kMaxBadWordBytes) continue;
    const std::size_t first = word.find_first_not_of(' ');
    if (first == std::string::npos) {
      add(word);  // blanks alone
      continue;
    }
    add(word.substr(first));
    add(" " + word.substr(first));
  }
  return out;
}

}  // namespace brigade::router
