// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "router/core/types.h"

namespace brigade::router {

// From what a client sends to token ids, the same for every door. Long texts take milliseconds:
// call it on the tokenizer pool. Errors are kInvalidArgument, also for texts that are not valid
// UTF-8.

struct TextPromptOptions {
  bool add_special_tokens = true;  ///< BOS first and EOS last, where the tokenizer wants them
  bool parse_special = true;       ///< the texts of special tokens are those tokens
};

/// A raw prompt.
[[nodiscard]] Result<std::vector<std::int32_t>> prompt_from_text(
    const ServedModel& model, std::string_view text, const TextPromptOptions& options = {});

/// A prompt of ids, each checked against the vocabulary. Nothing is added.
[[nodiscard]] Result<std::vector<std::int32_t>> prompt_from_ids(const ServedModel& model,
                                                                std::vector<std::int32_t> ids);

struct ChatPromptOptions {
  bool add_generation_prompt = true;
  bool add_special_tokens = false;  ///< templates write their own BOS
  /// The prompt ends with the last message's text, so that it is continued: what the template
  /// writes after it is left out.
  bool continue_final_message = false;
  std::vector<std::pair<std::string, model::jinja::Value>> globals;  ///< of the template
};

/// A conversation in the model's own template, which may write today's date (UTC). Special tokens
/// count where the template wrote them; in a message their texts are only text.
[[nodiscard]] Result<std::vector<std::int32_t>> prompt_from_messages(
    const ServedModel& model, const std::vector<model::ChatMessage>& messages,
    const ChatPromptOptions& options = {});

/// The token sequences that each word may come out as: the word, and the word behind a blank. Empty
/// words give none, and so do words past the limits, which check_request refuses.
[[nodiscard]] std::vector<std::vector<std::int32_t>> bad_word_tokens(
    const ServedModel& model, const std::vector<std::string>& words);

}  // namespace brigade::router
