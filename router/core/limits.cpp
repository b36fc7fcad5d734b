// SPDX-License-Identifier: Apache-2.0
#include "router/core/limits.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

/// Below this the softmax of logits / temperature leaves float's range; the choice is the greedy
/// one.
constexpr float kGreedyTemperature = 1e-5F;

Status check_range(std::string_view field, float value, float low, float high) {
  if (std::isfinite(value) && value >= low && value <= high) return {};
  return invalid_argument(
      str_cat(field, ": ", value, " is not a number in [", low, ", ", high, ']'));
}

Status check_count(std::string_view field, std::int32_t value) {
  if (value >= -1 && value <= kMaxLogprobs) return {};
  return invalid_argument(str_cat(field, ": ", value, " is not in [0, ", kMaxLogprobs, ']'));
}

Status check_tokens(std::string_view field, const std::vector<std::int32_t>& tokens,
                    std::int64_t vocab_size) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab_size) continue;
    return invalid_argument(str_cat(field, '[', i, "]: token id ", tokens[i],
                                    " is outside the vocabulary of ", vocab_size, " tokens"));
  }
  return {};
}

Status check_sampling(const wire::GenerationParams& params) {
  RETURN_IF_ERROR(check_range("temperature", params.temperature, 0, kMaxTemperature));
  RETURN_IF_ERROR(check_range("top_p", params.top_p, 0, 1));
  if (params.top_k < -1) {
    return invalid_argument(str_cat("top_k: ", params.top_k,
                                    " is neither a count of tokens nor 0 or -1 for all of them"));
  }
  RETURN_IF_ERROR(check_range("min_p", params.min_p, 0, 1));
  RETURN_IF_ERROR(check_range("typical_p", params.typical_p, 0, 1));
  if (params.typical_p == 0) return invalid_argument("typical_p: 0 keeps nothing; 1 keeps all");
  RETURN_IF_ERROR(check_range("repetition_penalty", params.repetition_penalty,
                              kMinRepetitionPenalty, kMaxRepetitionPenalty));
  RETURN_IF_ERROR(
      check_range("presence_penalty", params.presence_penalty, -kMaxPenalty, kMaxPenalty));
  RETURN_IF_ERROR(
      check_range("frequency_penalty", params.frequency_penalty, -kMaxPenalty, kMaxPenalty));
  RETURN_IF_ERROR(check_count("logprobs", params.num_logprobs));
  return check_count("prompt_logprobs", params.num_prompt_logprobs);
}

Status check_priority(std::int32_t priority) {
  if (priority >= -kMaxPriority && priority <= kMaxPriority) return {};
  return invalid_argument(
      str_cat("priority: ", priority, " is not in [", -kMaxPriority, ", ", kMaxPriority, ']'));
}

Status check_size(std::string_view field, std::size_t size, std::size_t most) {
  if (size <= most) return {};
  return invalid_argument(str_cat(field, ": ", size, " entries, at most ", most));
}

Status check_bias(const std::vector<wire::TokenBias>& biases, std::int64_t vocab_size) {
  RETURN_IF_ERROR(check_size("logit_bias", biases.size(), kMaxBiases));
  std::vector<std::int32_t> tokens;
  for (const wire::TokenBias& bias : biases) {
    RETURN_IF_ERROR(check_range("logit_bias", bias.bias, -kMaxBias, kMaxBias));
    tokens.push_back(bias.token);
  }
  RETURN_IF_ERROR(check_tokens("logit_bias", tokens, vocab_size));
  std::sort(tokens.begin(), tokens.end());
  const auto twice = std::adjacent_find(tokens.begin(), tokens.end());
  if (twice == tokens.end()) return {};
  return invalid_argument(str_cat("logit_bias: token id ", *twice, " comes twice"));
}

Status check_bad_words(const Request& request, std::int64_t vocab_size) {
  const std::vector<std::string>& words = request.params.bad_words;
  RETURN_IF_ERROR(check_size("bad_words", words.size(), kMaxBadWords));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.empty() || word.size() > kMaxBadWordBytes || !model::is_valid_utf8(word)) {
      return invalid_argument(str_cat("bad_words[", i, "]: ", quoted(word), " of ", word.size(),
                                      " bytes is not UTF-8 of 1 to ", kMaxBadWordBytes, " bytes"));
    }
  }
  RETURN_IF_ERROR(
      check_size("bad_words", request.bad_words.size(), kMaxBadWords * kBadWordVariants));
  for (const std::vector<std::int32_t>& word : request.bad_words) {
    RETURN_IF_ERROR(check_size("bad_words", word.size(), kMaxBadWordBytes + 1));
    if (word.empty()) return invalid_argument("bad_words: one of them has no tokens");
    RETURN_IF_ERROR(check_tokens("bad_words", word, vocab_size));
  }
  return {};
}

Status check_masks(const Request& request, std::int64_t vocab_size) {
  const wire::GenerationParams& params = request.params;
  RETURN_IF_ERROR(check_bias(params.logit_bias, vocab_size));
  RETURN_IF_ERROR(
      check_size("allowed_token_ids", params.allowed_token_ids.size(), kMaxAllowedTokens));
  RETURN_IF_ERROR(check_tokens("allowed_token_ids", params.allowed_token_ids, vocab_size));
  return check_bad_words(request, vocab_size);
}

Status check_stops(const wire::GenerationParams& params, std::int64_t vocab_size) {
  if (params.stop.size() > kMaxStopStrings) {
    return invalid_argument(
        str_cat("stop: ", params.stop.size(), " strings, at most ", kMaxStopStrings));
  }
  for (std::size_t i = 0; i < params.stop.size(); ++i) {
    const std::string& stop = params.stop[i];
    if (stop.empty()) return invalid_argument(str_cat("stop[", i, "]: must not be empty"));
    if (stop.size() > kMaxStopBytes) {
      return invalid_argument(
          str_cat("stop[", i, "]: ", stop.size(), " bytes, at most ", kMaxStopBytes));
    }
    if (!model::is_valid_utf8(stop)) {
      return invalid_argument(str_cat("stop[", i, "]: ", quoted(stop), " is not valid UTF-8"));
    }
  }
  if (params.stop_token_ids.size() > kMaxStopTokens) {
    return invalid_argument(str_cat("stop_token_ids: ", params.stop_token_ids.size(),
                                    " tokens, at most ", kMaxStopTokens));
  }
  return check_tokens("stop_token_ids", params.stop_token_ids, vocab_size);
}

Status over_context(std::string_view field, std::int64_t context, std::int64_t num_prompt,
                    std::int64_t max_tokens) {
  return invalid_argument(
      str_cat(field, ": this model's maximum context length is ", context,
              " tokens, however you requested ", num_prompt + max_tokens, " tokens (", num_prompt,
              " in your prompt; ", max_tokens,
              " for the completion). Please reduce your prompt or the completion's length."));
}

Status over_kv(std::int64_t max_kv_tokens, std::int64_t num_prompt, std::int64_t max_tokens) {
  return invalid_argument(str_cat("prompt: ", num_prompt, " tokens and a completion of ",
                                  max_tokens, " can never fit: a replica's KV cache holds ",
                                  max_kv_tokens,
                                  " tokens, which is the maximum context length here. Please "
                                  "reduce your prompt or the completion's length."));
}

/// The length of the output: as asked for, or as much as context and KV allow.
Result<std::uint32_t> resolve_max_tokens(const Request& request, const ServedModel& model,
                                         std::int64_t max_kv_tokens) {
  const auto num_prompt = static_cast<std::int64_t>(request.prompt.size());
  const wire::GenerationParams& params = request.params;
  const std::int64_t context = model.max_context;
  const bool kv_known = max_kv_tokens > 0;
  if (!params.max_tokens) {
    if (num_prompt >= context) return over_context("prompt", context, num_prompt, 1);
    if (kv_known && num_prompt > max_kv_tokens) return over_kv(max_kv_tokens, num_prompt, 1);
    const std::int64_t room =
        std::min(context, kv_known ? max_kv_tokens + 1 : context) - num_prompt;
    return static_cast<std::uint32_t>(room);
  }
  const std::int64_t max_tokens = *params.max_tokens;
  if (max_tokens == 0 && params.num_prompt_logprobs < 0) {
    return invalid_argument(
        "max_tokens: 0 is only of use with the prompt's log-probabilities (echo and logprobs)");
  }
  if (num_prompt > context || (max_tokens > 0 && num_prompt >= context)) {
    return over_context("prompt", context, num_prompt, max_tokens);
  }
  if (num_prompt + max_tokens > context) {
    return over_context("max_tokens", context, num_prompt, max_tokens);
  }
  if (kv_known && kv_tokens(num_prompt, max_tokens) > max_kv_tokens) {
    return over_kv(max_kv_tokens, num_prompt, max_tokens);
  }
  return static_cast<std::uint32_t>(max_tokens);
}

}  // namespace

Result<wire::GenerationParams> check_request(const Request& request, const ServedModel& model,
                                             std::int64_t max_kv_tokens) {
  if (request.tenant.size() > kMaxTenantBytes) {
    return invalid_argument(
        str_cat("tenant: ", request.tenant.size(), " bytes, at most ", kMaxTenantBytes));
  }
  if (request.prompt.empty()) {
    return invalid_argument("prompt: it is empty, at least one token is needed");
  }
  wire::GenerationParams params = request.params;
  RETURN_IF_ERROR(check_sampling(params));
  RETURN_IF_ERROR(check_stops(params, model.spec.vocab_size));
  RETURN_IF_ERROR(check_priority(params.priority));
  RETURN_IF_ERROR(check_masks(request, model.spec.vocab_size));
  ASSIGN_OR_RETURN(params.max_tokens, resolve_max_tokens(request, model, max_kv_tokens));
  RETURN_IF_ERROR(check_tokens("prompt", request.prompt, model.spec.vocab_size));
  if (params.min_tokens > *params.max_tokens) {
    return invalid_argument(str_cat("min_tokens: ", params.min_tokens, " is more than max_tokens, ",
                                    *params.max_tokens));
  }
  if (params.temperature < kGreedyTemperature || params.top_p == 0) params.temperature = 0;
  if (params.top_p == 0) params.top_p = 1;
  std::vector<std::int32_t>& allowed = params.allowed_token_ids;
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
  if (params.top_k == -1 || params.top_k >= model.spec.vocab_size) params.top_k = 0;
  return params;
}

}  // namespace brigade::router
