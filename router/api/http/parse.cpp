// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/parse.h"

#include <algorithm>
#include <limits>

#include "common/base/strings.h"
#include "router/api/http/parse_fields.h"
#include "router/api/http/parse_messages.h"
#include "router/api/http/parse_sampling.h"
#include "router/api/http/unsupported.h"
#include "router/core/limits.h"

namespace brigade::router {
namespace {

constexpr std::int64_t kMaxN = 128;
constexpr std::size_t kMaxChoices = 128;  // prompts x n
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

/// Both names where both are taken; the newer one wins.
void read_max_tokens(FieldReader& fields, bool zero_allowed, GenerationCallArgs& out) {
  const std::int64_t min = zero_allowed ? 0 : 1;
  auto limit = fields.integer("max_tokens", min, kMaxInt32);
  if (out.answer.api == Api::kChat) {
    const auto newer = fields.integer("max_completion_tokens", min, kMaxInt32);
    if (newer) limit = newer;
  }
  if (limit) out.params.max_tokens = static_cast<std::uint32_t>(*limit);
}

void read_stream(FieldReader& fields, AnswerOptions& out) {
  out.stream = fields.boolean("stream").value_or(false);
  const JsonValue* options = fields.get("stream_options");
  if (options == nullptr) return;
  if (options->as_object() == nullptr) {
    return fields.refuse("stream_options", "an object", *options);
  }
  FieldReader nested(*options, "stream_options");
  out.include_usage = nested.boolean("include_usage").value_or(false);
  out.continuous_usage = nested.boolean("continuous_usage_stats").value_or(false);
  if (nested.error()) fields.fail(*nested.error());
}

void read_n(FieldReader& fields, GenerationCallArgs& out) {
  out.answer.n = static_cast<std::uint32_t>(fields.integer("n", 1, kMaxN).value_or(1));
  const auto best_of = fields.integer("best_of", 1, kMaxInt32);
  if (best_of && *best_of != out.answer.n) {
    fields.fail("best_of", str_cat("best_of other than n is not supported: it is ", *best_of,
                                   ", n is ", out.answer.n, "."));
  }
}

void read_prompt_options(FieldReader& fields, GenerationCallArgs& out) {
  if (const auto count = fields.integer("prompt_logprobs", 0, kMaxLogprobs)) {
    out.answer.prompt_logprobs = static_cast<std::int32_t>(*count);
    out.params.num_prompt_logprobs = out.answer.prompt_logprobs;
    if (out.answer.stream) {
      fields.fail("prompt_logprobs", "prompt_logprobs is not available when stream is true.");
    }
  }
  if (const auto count = fields.integer("truncate_prompt_tokens", -1, kMaxInt32)) {
    if (*count == 0) fields.fail("truncate_prompt_tokens", "truncate_prompt_tokens must not be 0.");
    out.truncate_prompt_tokens = static_cast<std::int32_t>(*count);
  }
}

void read_completions(FieldReader& fields, GenerationCallArgs& out) {
  read_prompts(fields, out.prompts);
  out.answer.echo = fields.boolean("echo").value_or(false);
  const bool scores = out.answer.echo || out.answer.prompt_logprobs >= 0;
  read_max_tokens(fields, /*zero_allowed=*/scores, out);
  if (const auto logprobs = fields.integer("logprobs", 0, kMaxLogprobs)) {
    out.answer.logprobs = true;
    out.params.num_logprobs = static_cast<std::int32_t>(*logprobs);
    if (out.answer.echo) {
      out.params.num_prompt_logprobs =
          std::max(out.answer.prompt_logprobs, out.params.num_logprobs);
    }
  }
  out.add_special_tokens = fields.boolean("add_special_tokens").value_or(true);
  const std::size_t choices = out.prompts.size() * out.answer.n;
  if (choices > kMaxChoices) {
    fields.fail("n",
                str_cat("prompts times n must be at most ", kMaxChoices, ", not ", choices, "."));
  }
}

void read_chat(FieldReader& fields, GenerationCallArgs& out) {
  read_chat_args(fields, out.chat);
  read_max_tokens(fields, /*zero_allowed=*/false, out);
  if (fields.boolean("echo").value_or(false)) fields.fail("echo", "echo is not supported in chat.");
  out.add_special_tokens = fields.boolean("add_special_tokens").value_or(false);
  out.answer.logprobs = fields.boolean("logprobs").value_or(false);
  const std::int64_t top = fields.integer("top_logprobs", 0, kMaxLogprobs).value_or(0);
  if (out.answer.logprobs) {
    out.params.num_logprobs = static_cast<std::int32_t>(top);
  } else if (top > 0) {
    fields.fail("top_logprobs", "top_logprobs needs logprobs to be true.");
  }
}

}  // namespace

std::optional<ApiError> parse_generation(std::string_view body, Api api, GenerationCallArgs& out) {
  JsonValue object;
  if (auto error = parse_object(body, object)) return error;
  FieldReader fields(object);
  out.answer.api = api;
  out.model = fields.string("model", kMaxModelName).value_or("");
  refuse_unsupported(fields);
  read_sampling(fields, out.params);
  read_stream(fields, out.answer);
  read_n(fields, out);
  read_prompt_options(fields, out);
  out.answer.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  out.answer.tokens_as_ids = fields.boolean("return_tokens_as_token_ids").value_or(false);
  if (api == Api::kChat) {
    read_chat(fields, out);
  } else {
    read_completions(fields, out);
  }
  if (out.params.max_tokens && out.params.min_tokens > *out.params.max_tokens) {
    fields.fail("min_tokens",
                str_cat("min_tokens must be at most max_tokens, ", *out.params.max_tokens, ", not ",
                        out.params.min_tokens, "."));
  }
  return fields.error();
}

std::optional<ApiError> parse_tokenize(std::string_view body, TokenizeArgs& out) {
  JsonValue object;
  if (auto error = parse_object(body, object)) return error;
  FieldReader fields(object);
  out.model = fields.string("model", kMaxModelName).value_or("");
  if (fields.get("messages") != nullptr) {
    refuse_unsupported(fields);
    read_chat_args(fields, out.chat);
    out.add_special_tokens = fields.boolean("add_special_tokens").value_or(false);
  } else {
    out.prompt = fields.string("prompt", std::numeric_limits<std::size_t>::max());
    if (!out.prompt) fields.fail("prompt", "prompt or messages must be there.");
    out.add_special_tokens = fields.boolean("add_special_tokens").value_or(true);
  }
  out.return_token_strs = fields.boolean("return_token_strs").value_or(false);
  return fields.error();
}

std::optional<ApiError> parse_detokenize(std::string_view body, DetokenizeArgs& out) {
  JsonValue object;
  if (auto error = parse_object(body, object)) return error;
  FieldReader fields(object);
  out.model = fields.string("model", kMaxModelName).value_or("");
  if (const JsonValue* tokens = fields.get("tokens")) {
    read_token_ids(fields, "tokens", *tokens, out.tokens);
  } else {
    fields.fail("tokens", "tokens is missing.");
  }
  return fields.error();
}

std::optional<ApiError> parse_drain(std::string_view body, std::uint32_t& replica) {
  JsonValue object;
  if (auto error = parse_object(body, object)) return error;
  FieldReader fields(object);
  const auto id = fields.integer("replica", 0, kMaxInt32);
  if (!id) fields.fail("replica", "replica is missing: the number that /status shows.");
  replica = static_cast<std::uint32_t>(id.value_or(0));
  return fields.error();
}

}  // namespace brigade::router
