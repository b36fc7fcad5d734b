// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/model/chat_template.h"
#include "common/wire/generation.h"
#include "router/api/http/error.h"
#include "router/api/http/json.h"

namespace brigade::router {

/// What a prompt may be: text, or token ids.
using PromptInput = std::variant<std::string, std::vector<std::int32_t>>;

enum class Api : std::uint8_t { kCompletions, kChat };

/// How the answer to a generation is to look.
struct AnswerOptions {
  Api api = Api::kCompletions;
  std::uint32_t n = 1;
  bool stream = false;
  bool include_usage = false;     ///< a usage event before the end of the stream
  bool continuous_usage = false;  ///< usage in every event
  bool logprobs = false;
  bool echo = false;
  bool return_token_ids = false;
  bool tokens_as_ids = false;         ///< logprobs name tokens `token_id:N`
  std::int32_t prompt_logprobs = -1;  ///< -1 none, else so many of each prompt token's best
};

/// A conversation and how it is to be rendered.
struct ChatArgs {
  std::vector<model::ChatMessage> messages;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  std::vector<std::pair<std::string, model::jinja::Value>> globals;  ///< further variables
};

/// A generation as asked for: what both APIs come to. Nothing is tokenized yet.
struct GenerationCallArgs {
  std::string model;                 ///< empty: the only one
  std::vector<PromptInput> prompts;  ///< completions: 1 to 64
  ChatArgs chat;
  bool add_special_tokens = true;  ///< BOS, where the tokenizer wants one
  /// Only so many of the prompt's last tokens count; -1: as many as the context has room for.
  std::optional<std::int32_t> truncate_prompt_tokens;
  wire::GenerationParams params;  ///< max_tokens absent: the API's default
  AnswerOptions answer;
};

struct TokenizeArgs {
  std::string model;
  std::optional<std::string> prompt;  ///< else chat
  ChatArgs chat;
  bool add_special_tokens = true;
  bool return_token_strs = false;
};

struct DetokenizeArgs {
  std::string model;
  std::vector<std::int32_t> tokens;
};

/// Each reads a body: JSON, then fields, types and ranges. The error names the field and its value.
/// Fields that nobody knows are ignored, null is absent.
[[nodiscard]] std::optional<ApiError> parse_generation(std::string_view body, Api api,
                                                       GenerationCallArgs& out);
[[nodiscard]] std::optional<ApiError> parse_tokenize(std::string_view body, TokenizeArgs& out);
[[nodiscard]] std::optional<ApiError> parse_detokenize(std::string_view body, DetokenizeArgs& out);
/// The body of /drain: {"replica": N}.
[[nodiscard]] std::optional<ApiError> parse_drain(std::string_view body, std::uint32_t& replica);

}  // namespace brigade::router
