// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/logit_controls.h"

#include <algorithm>

#include "common/base/check.h"

namespace brigade::worker {

LogitControls::LogitControls(std::shared_ptr<const wire::SamplingControls> settings, Range vocab)
    : settings_(std::move(settings)), vocab_(vocab) {
  for (const std::vector<std::int32_t>& word : settings_->bad_words) {
    INVARIANT(!word.empty()) << "an empty bad word";
    max_tail_ = std::max(max_tail_, word.size() - 1);
  }
  if (settings_->repetition_penalty != 1) {
    for (const std::int32_t token : settings_->prompt_tokens) {
      if (vocab_.contains(token)) (void)seen(token);
    }
  }
  for (const std::int32_t token : settings_->output_tokens)
    push(token);
}

LogitControls::Seen& LogitControls::seen(std::int32_t token) {
  const auto [at, is_new] = seen_at_.try_emplace(token, seen_.size());
  if (is_new) seen_.push_back({.token = token});
  return seen_[at->second];
}

void LogitControls::push(std::int32_t token) {
  if (settings_->has_penalties() && vocab_.contains(token)) ++seen(token).num_output;
  if (max_tail_ == 0) return;
  if (tail_.size() == max_tail_) tail_.erase(tail_.begin());
  tail_.push_back(token);
}

void LogitControls::adjust(std::span<float> logits, std::vector<RawLogit>& raw) const {
  const auto at = [&](std::int32_t token) -> float& {
    return logits[static_cast<std::size_t>(token - vocab_.begin)];
  };
  const wire::SamplingControls& s = *settings_;
  for (const Seen& one : seen_) {
    float& logit = at(one.token);
    raw.push_back({.token = one.token, .logit = logit});
    if (s.repetition_penalty != 1) {
      logit = logit > 0 ? logit / s.repetition_penalty : logit * s.repetition_penalty;
    }
    if (one.num_output == 0) continue;
    logit -= s.frequency_penalty * static_cast<float>(one.num_output);
    logit -= s.presence_penalty;
  }
  for (const wire::TokenBias& bias : s.bias) {
    if (!vocab_.contains(bias.token)) continue;
    raw.push_back({.token = bias.token, .logit = at(bias.token)});
    at(bias.token) += bias.bias;
  }
}

void LogitControls::mask(TokenMask& mask) const {
  if (!settings_->allowed_tokens.empty()) mask.allow_only(settings_->allowed_tokens);
  for (const std::vector<std::int32_t>& word : settings_->bad_words) {
    const std::size_t begun = word.size() - 1;
    if (begun > tail_.size()) continue;
    if (std::equal(word.begin(), word.end() - 1,
                   tail_.end() - static_cast<std::ptrdiff_t>(begun))) {
      mask.forbid(word.back());
    }
  }
}

}  // namespace brigade::worker
