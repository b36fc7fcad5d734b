// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "router/core/types.h"

namespace brigade::router {

// From what a client sends to token ids, the same for every door. Pure; long texts take
// milliseconds: call it on the tokenizer pool. Texts must be valid UTF-8. Errors are
// kInvalidArgument.

/// A raw prompt: the texts of special tokens in it are those tokens. BOS comes first where the
/// tokenizer wants one and `add_special_tokens` says so.
[[nodiscard]] Result<std::vector<std::int32_t>> prompt_from_text(const ServedModel& model,
                                                                 std::string_view text,
                                                                 bool add_special_tokens = true);

/// A prompt of ids, each checked against the vocabulary. Nothing is added.
[[nodiscard]] Result<std::vector<std::int32_t>> prompt_from_ids(const ServedModel& model,
                                                                std::vector<std::int32_t> ids);

struct ChatPromptOptions {
  bool add_generation_prompt = true;
  bool add_special_tokens = false;  ///< templates write their own BOS
};

/// A conversation in the model's own template. Special tokens count where the template wrote them;
/// in a message their texts are only text.
[[nodiscard]] Result<std::vector<std::int32_t>> prompt_from_messages(
    const ServedModel& model, const std::vector<model::ChatMessage>& messages,
    const ChatPromptOptions& options = {});

/// The tokens of rendered segments: as of one text, except that special tokens count in trusted
/// segments alone.
[[nodiscard]] std::vector<std::int32_t> encode_segments(
    const model::Tokenizer& tokenizer, const std::vector<model::PromptSegment>& segments);

}  // namespace brigade::router
