// SPDX-License-Identifier: Apache-2.0
#include "common/wire/codec.h"
#include "common/wire/fields.h"

namespace brigade::wire {
namespace {

std::vector<TokenBias> unpack_bias(const std::vector<std::int32_t>& tokens,
                                   const std::vector<float>& values, Fields& f) {
  f.length(values.size(), tokens.size(), "params.bias_values");
  std::vector<TokenBias> bias;
  if (!f.ok()) return bias;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    bias.push_back({.token = tokens[i], .bias = f.finite(values[i], "params.bias_values")});
  }
  return bias;
}

/// Ranges of the numbers are router/core's to judge (it answers in the client's terms); here they
/// must be numbers.
GenerationParams unpack_params(const fb::Params* m, Fields& f) {
  GenerationParams p;
  if (m == nullptr) return p;
  p.temperature = f.finite(m->temperature(), "params.temperature");
  p.top_p = f.finite(m->top_p(), "params.top_p");
  p.top_k = m->top_k();
  if (m->has_seed()) p.seed = m->seed();
  if (m->has_max_tokens()) p.max_tokens = m->max_tokens();
  p.min_tokens = m->min_tokens();
  p.ignore_eos = m->ignore_eos();
  p.stop = f.strings(m->stop(), "params.stop");
  p.stop_token_ids = f.vector(m->stop_token_ids());
  p.num_logprobs = m->num_logprobs();
  p.num_prompt_logprobs = m->num_prompt_logprobs();
  p.deadline_ms = m->deadline_ms();
  p.priority = m->priority();
  p.min_p = f.finite(m->min_p(), "params.min_p");
  p.typical_p = f.finite(m->typical_p(), "params.typical_p");
  p.repetition_penalty = f.finite(m->repetition_penalty(), "params.repetition_penalty");
  p.presence_penalty = f.finite(m->presence_penalty(), "params.presence_penalty");
  p.frequency_penalty = f.finite(m->frequency_penalty(), "params.frequency_penalty");
  p.logit_bias = unpack_bias(f.vector(m->bias_tokens()), f.vector(m->bias_values()), f);
  p.allowed_token_ids = f.vector(m->allowed_token_ids());
  p.bad_words = f.strings(m->bad_words(), "params.bad_words");
  p.include_stop_str = m->include_stop_str();
  p.keep_special_tokens = m->keep_special_tokens();
  return p;
}

Prompt unpack_prompt(const fb::Generate& m, Fields& f) {
  switch (m.prompt_kind()) {
    case fb::PromptKind::Text:
      return TextPrompt{.text = f.text(m.text()), .parse_special = m.parse_special()};
    case fb::PromptKind::TokenIds:
      return TokenPrompt{.token_ids = f.vector(m.token_ids())};
    case fb::PromptKind::Chat:
      break;
    default:
      f.fault("prompt_kind", "is unknown");
      return TextPrompt{};
  }
  auto roles = f.strings(m.roles(), "roles");
  auto contents = f.strings(m.contents(), "contents");
  f.length(contents.size(), roles.size(), "contents");
  ChatPrompt chat;
  if (!f.ok()) return chat;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    chat.messages.push_back({.role = std::move(roles[i]), .content = std::move(contents[i])});
  }
  return chat;
}

Generate unpack(const fb::Generate& m, Fields& f) {
  return {.request = m.request(),
          .model = f.text(m.model()),
          .tenant = f.text(m.tenant()),
          .prompt = unpack_prompt(m, f),
          .params = unpack_params(m.params(), f)};
}

Cancel unpack(const fb::Cancel& m, Fields&) {
  return {.request = m.request()};
}
ListModels unpack(const fb::ListModels& m, Fields&) {
  return {.request = m.request()};
}
GetStatus unpack(const fb::GetStatus& m, Fields&) {
  return {.request = m.request()};
}
Drain unpack(const fb::Drain& m, Fields&) {
  return {.request = m.request(), .replica = m.replica()};
}

Accepted unpack(const fb::Accepted& m, Fields&) {
  return {.request = m.request()};
}

std::vector<OutputToken> unpack_tokens(const fb::TokenList* m, Fields& f, std::string_view field) {
  if (m == nullptr) return {};
  const auto ids = f.vector(m->tokens());
  const auto logprobs = f.vector(m->logprobs());
  const auto cu_top = f.vector(m->cu_top());
  const auto top_tokens = f.vector(m->top_tokens());
  const auto top_logprobs = f.vector(m->top_logprobs());
  const std::size_t n = ids.size();
  if (!logprobs.empty()) f.length(logprobs.size(), n, field);
  if (!cu_top.empty() || !top_tokens.empty()) f.intervals(cu_top, n, top_tokens.size(), field);
  f.length(top_logprobs.size(), top_tokens.size(), field);
  if (!f.ok()) return {};
  std::vector<OutputToken> tokens(n);
  for (std::size_t i = 0; i < n; ++i) {
    tokens[i].token = ids[i];
    if (!logprobs.empty() && !std::isnan(logprobs[i])) tokens[i].logprob = logprobs[i];
    if (cu_top.empty()) continue;
    for (std::uint32_t t = cu_top[i]; t < cu_top[i + 1]; ++t) {
      tokens[i].top.push_back({.token = top_tokens[t], .logprob = top_logprobs[t]});
    }
  }
  return tokens;
}

Chunk unpack(const fb::Chunk& m, Fields& f) {
  Chunk c = {.request = m.request(),
             .text = f.text(m.text()),
             .tokens = unpack_tokens(m.output(), f, "output"),
             .token_texts = {},
             .prompt_tokens = unpack_tokens(m.prompt(), f, "prompt")};
  if (m.output() != nullptr) c.token_texts = f.strings(m.output()->texts(), "output.texts");
  if (!c.token_texts.empty()) f.length(c.token_texts.size(), c.tokens.size(), "output.texts");
  return c;
}

Finished unpack(const fb::Finished& m, Fields& f) {
  return {.request = m.request(),
          .reason = f.enumerator(m.reason(), FinishReason::kError, "reason"),
          .stop_reason = f.text(m.stop_reason()),
          .prompt_tokens = m.prompt_tokens(),
          .completion_tokens = m.completion_tokens(),
          .cached_tokens = m.cached_tokens()};
}

Refused unpack(const fb::Refused& m, Fields& f) {
  return {.request = m.request(),
          .status = f.error(m.error(), "error"),
          .retry_after_s = m.retry_after_s(),
          .reason = f.enumerator(m.reason(), DropReason::kEvictedUnavailable, "reason")};
}

Models unpack(const fb::Models& m, Fields& f) {
  auto names = f.strings(m.names(), "names");
  const auto max_context = f.vector(m.max_context());
  const auto vocab_size = f.vector(m.vocab_size());
  f.length(max_context.size(), names.size(), "max_context");
  f.length(vocab_size.size(), names.size(), "vocab_size");
  Models models = {.request = m.request(), .models = {}};
  if (!f.ok()) return models;
  for (std::size_t i = 0; i < names.size(); ++i) {
    models.models.push_back(
        {.name = std::move(names[i]), .max_context = max_context[i], .vocab_size = vocab_size[i]});
  }
  return models;
}

StatusReply unpack(const fb::StatusReply& m, Fields& f) {
  return {.request = m.request(), .json = f.text(m.json())};
}
Done unpack(const fb::Done& m, Fields&) {
  return {.request = m.request()};
}
KeepAlive unpack(const fb::KeepAlive&, Fields&) {
  return {};
}

template <typename Message, typename Body>
Result<Message> take(const Body* body, std::string_view name) {
  if (body == nullptr) return data_loss(str_cat(name, " has no body"));
  Fields fields(name);
  auto value = unpack(*body, fields);
  if (!fields.ok()) return fields.status();
  return Message(std::move(value));
}

}  // namespace

Result<ToRouter> decode_to_router(std::span<const std::byte> bytes) {
  using Body = fb::ToRouterBody;
  const AlignedBytes aligned(bytes.first(std::min(bytes.size(), kMaxClientBytes)));
  ASSIGN_OR_RETURN(const auto* root,
                   (verified_root<fb::ToRouter>(bytes, aligned, kMaxClientBytes, "ToRouter")));
  switch (root->body_type()) {
    case Body::Generate:
      return take<ToRouter>(root->body_as_Generate(), "Generate");
    case Body::Cancel:
      return take<ToRouter>(root->body_as_Cancel(), "Cancel");
    case Body::ListModels:
      return take<ToRouter>(root->body_as_ListModels(), "ListModels");
    case Body::GetStatus:
      return take<ToRouter>(root->body_as_GetStatus(), "GetStatus");
    case Body::Drain:
      return take<ToRouter>(root->body_as_Drain(), "Drain");
    case Body::NONE:
      break;
  }
  return data_loss(
      str_cat("ToRouter.body is of unknown kind ", +static_cast<std::uint8_t>(root->body_type())));
}

Result<FromRouter> decode_from_router(std::span<const std::byte> bytes) {
  using Body = fb::FromRouterBody;
  const AlignedBytes aligned(bytes.first(std::min(bytes.size(), kMaxClientBytes)));
  ASSIGN_OR_RETURN(const auto* root,
                   (verified_root<fb::FromRouter>(bytes, aligned, kMaxClientBytes, "FromRouter")));
  switch (root->body_type()) {
    case Body::Accepted:
      return take<FromRouter>(root->body_as_Accepted(), "Accepted");
    case Body::Chunk:
      return take<FromRouter>(root->body_as_Chunk(), "Chunk");
    case Body::Finished:
      return take<FromRouter>(root->body_as_Finished(), "Finished");
    case Body::Refused:
      return take<FromRouter>(root->body_as_Refused(), "Refused");
    case Body::Models:
      return take<FromRouter>(root->body_as_Models(), "Models");
    case Body::StatusReply:
      return take<FromRouter>(root->body_as_StatusReply(), "StatusReply");
    case Body::Done:
      return take<FromRouter>(root->body_as_Done(), "Done");
    case Body::KeepAlive:
      return take<FromRouter>(root->body_as_KeepAlive(), "KeepAlive");
    case Body::NONE:
      break;
  }
  return data_loss(str_cat("FromRouter.body is of unknown kind ",
                           +static_cast<std::uint8_t>(root->body_type())));
}

}  // namespace brigade::wire
