// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tools/sse.h"

namespace brigade::tools {

/// Counts the tokens of one streamed answer. An event may bring several: how many is told by its
/// running usage (`continuous_usage_stats`), else by its `token_ids`, else an event with text is
/// one token.
class AnswerReader final {
 public:
  using OnTokens = std::function<void(std::uint32_t num_tokens)>;

  /// Calls `on_tokens` for each event that brings any.
  void push(std::string_view bytes, const OnTokens& on_tokens);

  /// [DONE] has come.
  [[nodiscard]] bool done() const { return done_; }
  /// What went wrong, in few words of a small set; empty: nothing.
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] bool finished() const { return finished_; }  ///< a finish_reason has come
  [[nodiscard]] std::uint64_t output_tokens() const { return output_tokens_; }
  [[nodiscard]] std::uint64_t prompt_tokens() const { return prompt_tokens_; }
  [[nodiscard]] std::uint64_t cached_tokens() const { return cached_tokens_; }

 private:
  void on_event(const SseEvent& event, const OnTokens& on_tokens);

  SseReader events_;
  bool done_ = false;
  bool finished_ = false;
  std::string error_;
  std::uint64_t output_tokens_ = 0;
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t cached_tokens_ = 0;
};

/// The kind of an error body of OpenAI's shape: its code, else its type, else `error`.
[[nodiscard]] std::string error_kind(std::string_view body);

}  // namespace brigade::tools
