// SPDX-License-Identifier: Apache-2.0
#include "router/core/output_stream.h"

#include <algorithm>
#include <utility>

namespace brigade::router {
namespace {

void sort_unique(std::vector<std::int32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

OutputStream::OutputStream(std::shared_ptr<const model::Tokenizer> tokenizer,
                           const wire::GenerationParams& params,
                           std::optional<std::int32_t> last_prompt_token)
    : tokenizer_(std::move(tokenizer)),
      detokenizer_(tokenizer_, /*special=*/params.keep_special_tokens, last_prompt_token),
      matcher_(params.stop, params.include_stop_str),
      stop_token_ids_(params.stop_token_ids),
      ignore_eos_(params.ignore_eos),
      include_stop_(params.include_stop_str),
      min_tokens_(params.min_tokens),
      max_tokens_(params.max_tokens.value_or(0)) {
  sort_unique(stop_token_ids_);
  banned_ = stop_token_ids_;
  const auto end_ids = tokenizer_->end_ids();
  banned_.insert(banned_.end(), end_ids.begin(), end_ids.end());
  sort_unique(banned_);
}

OutputStream::Piece OutputStream::push(std::int32_t token) {
  Piece piece;
  ++num_tokens_;
  const bool may_stop = num_tokens_ > min_tokens_;
  const bool is_stop_token =
      may_stop && std::binary_search(stop_token_ids_.begin(), stop_token_ids_.end(), token);
  const auto end_ids = tokenizer_->end_ids();
  const bool is_end = may_stop && !ignore_eos_ && !is_stop_token &&
                      std::binary_search(end_ids.begin(), end_ids.end(), token);
  const bool shows = include_stop_ || (!is_stop_token && !is_end);
  if (shows) piece.text = matcher_.push(detokenizer_.push(token), may_stop);
  if (matcher_.matched()) {
    piece.finish = wire::FinishReason::kStop;
    piece.stop_reason = *matcher_.matched();
    return piece;
  }
  if (is_stop_token || is_end) {
    piece.finish = wire::FinishReason::kStop;
    if (is_stop_token) piece.stop_reason = std::to_string(token);
  } else if (num_tokens_ >= max_tokens_) {
    piece.finish = wire::FinishReason::kLength;
  }
  if (piece.finish != wire::FinishReason::kNone) piece.text += flush();
  return piece;
}

std::string OutputStream::flush() {
  // The replaced rest of a cut character is not looked at for stop strings: it was never text of
  // the model.
  std::string text = matcher_.flush();
  text += detokenizer_.finish();
  return text;
}

}  // namespace brigade::router
