// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/model/tokenizer.h"
#include "common/wire/generation.h"
#include "router/core/stop_matcher.h"

namespace brigade::router {

/// A request's output as its client sees it: tokens in; text, and the end by end token, stop token,
/// stop string or length, out.
class OutputStream final {
 public:
  struct Piece {
    std::string text;
    wire::FinishReason finish = wire::FinishReason::kNone;
    std::string stop_reason;  ///< the stop string, or the stop token's id in decimal
  };

  /// `params` as resolved by limits.h (max_tokens set). `last_prompt_token` is what the output goes
  /// on from.
  OutputStream(std::shared_ptr<const model::Tokenizer> tokenizer,
               const wire::GenerationParams& params,
               std::optional<std::int32_t> last_prompt_token = std::nullopt);

  /// Tokens that must not be sampled before min_tokens are out: end tokens and stop tokens,
  /// ascending.
  [[nodiscard]] const std::vector<std::int32_t>& banned_tokens() const { return banned_; }

  void set_max_tokens(std::uint32_t max_tokens) { max_tokens_ = max_tokens; }

  Piece push(std::int32_t token);
  /// Text held back, when the request ends from outside.
  std::string flush();

  [[nodiscard]] std::uint32_t num_tokens() const { return num_tokens_; }

 private:
  std::shared_ptr<const model::Tokenizer> tokenizer_;
  model::StreamingDetokenizer detokenizer_;
  StopMatcher matcher_;
  std::vector<std::int32_t> stop_token_ids_;  ///< ascending
  std::vector<std::int32_t> banned_;
  bool ignore_eos_;
  bool include_stop_;
  std::uint32_t min_tokens_;
  std::uint32_t max_tokens_;
  std::uint32_t num_tokens_ = 0;
};

}  // namespace brigade::router
