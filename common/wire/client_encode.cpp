// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "common/wire/pack.h"

namespace brigade::wire {
namespace {

Offset<fb::Params> pack_params(Builder& b, const GenerationParams& p) {
  const auto stop = pack_strings(b, p.stop);
  const auto stop_token_ids = pack_vector(b, p.stop_token_ids);
  std::vector<std::int32_t> bias_tokens;
  std::vector<float> bias_values;
  for (const TokenBias& bias : p.logit_bias) {
    bias_tokens.push_back(bias.token);
    bias_values.push_back(bias.bias);
  }
  const auto bias_tokens_offset = pack_vector(b, bias_tokens);
  const auto bias_values_offset = pack_vector(b, bias_values);
  const auto allowed = pack_vector(b, p.allowed_token_ids);
  const auto bad_words = pack_strings(b, p.bad_words);
  return fb::CreateParams(b, p.temperature, p.top_p, p.top_k, p.seed.has_value(),
                          p.seed.value_or(0), p.max_tokens.has_value(), p.max_tokens.value_or(0),
                          p.min_tokens, p.ignore_eos, stop, stop_token_ids, p.num_logprobs,
                          p.num_prompt_logprobs, p.deadline_ms, p.priority, p.min_p, p.typical_p,
                          p.repetition_penalty, p.presence_penalty, p.frequency_penalty,
                          bias_tokens_offset, bias_values_offset, allowed, bad_words,
                          p.include_stop_str, p.keep_special_tokens);
}

auto pack_body(Builder& b, const Generate& m) {
  Offset<flatbuffers::String> text = 0;
  Offset<flatbuffers::Vector<std::int32_t>> token_ids = 0;
  Offset<fb::Strings> roles = 0, contents = 0;
  bool parse_special = false;
  if (const auto* prompt = std::get_if<TextPrompt>(&m.prompt)) {
    text = pack_text(b, prompt->text);
    parse_special = prompt->parse_special;
  } else if (const auto* ids = std::get_if<TokenPrompt>(&m.prompt)) {
    token_ids = pack_vector(b, ids->token_ids);
  } else {
    std::vector<std::string> role_texts, content_texts;
    for (const PromptMessage& message : std::get<ChatPrompt>(m.prompt).messages) {
      role_texts.push_back(message.role);
      content_texts.push_back(message.content);
    }
    roles = pack_strings(b, role_texts);
    contents = pack_strings(b, content_texts);
  }
  const auto model = pack_text(b, m.model);
  const auto tenant = pack_text(b, m.tenant);
  const auto params = pack_params(b, m.params);
  // The alternatives of Prompt are in PromptKind's order.
  return fb::CreateGenerate(b, m.request, model, tenant,
                            static_cast<fb::PromptKind>(m.prompt.index()), text, parse_special,
                            token_ids, roles, contents, params);
}

auto pack_body(Builder& b, const Cancel& m) {
  return fb::CreateCancel(b, m.request);
}
auto pack_body(Builder& b, const ListModels& m) {
  return fb::CreateListModels(b, m.request);
}
auto pack_body(Builder& b, const GetStatus& m) {
  return fb::CreateGetStatus(b, m.request);
}
auto pack_body(Builder& b, const Drain& m) {
  return fb::CreateDrain(b, m.request, m.replica);
}

auto pack_body(Builder& b, const Accepted& m) {
  return fb::CreateAccepted(b, m.request);
}

Offset<fb::TokenList> pack_tokens(Builder& b, const std::vector<OutputToken>& tokens,
                                  const std::vector<std::string>& texts) {
  if (tokens.empty() && texts.empty()) return 0;
  std::vector<std::int32_t> ids, top_tokens;
  std::vector<float> logprobs, top_logprobs;
  std::vector<std::uint32_t> cu_top = {0};
  for (const OutputToken& token : tokens) {
    ids.push_back(token.token);
    logprobs.push_back(token.logprob.value_or(std::numeric_limits<float>::quiet_NaN()));
    for (const TokenLogprob& top : token.top) {
      top_tokens.push_back(top.token);
      top_logprobs.push_back(top.logprob);
    }
    cu_top.push_back(static_cast<std::uint32_t>(top_tokens.size()));
  }
  const auto ids_offset = pack_vector(b, ids);
  const auto logprobs_offset = pack_vector(b, logprobs);
  const auto cu_offset = pack_vector(b, cu_top);
  const auto top_offset = pack_vector(b, top_tokens);
  const auto top_logprobs_offset = pack_vector(b, top_logprobs);
  const auto texts_offset = pack_strings(b, texts);
  return fb::CreateTokenList(b, ids_offset, logprobs_offset, cu_offset, top_offset,
                             top_logprobs_offset, texts_offset);
}

auto pack_body(Builder& b, const Chunk& m) {
  const auto text = pack_text(b, m.text);
  const auto output = pack_tokens(b, m.tokens, m.token_texts);
  const auto prompt = pack_tokens(b, m.prompt_tokens, {});
  return fb::CreateChunk(b, m.request, text, output, prompt);
}

auto pack_body(Builder& b, const Finished& m) {
  const auto stop_reason = pack_text(b, m.stop_reason);
  return fb::CreateFinished(b, m.request, static_cast<std::uint8_t>(m.reason), stop_reason,
                            m.prompt_tokens, m.completion_tokens, m.cached_tokens);
}

auto pack_body(Builder& b, const Refused& m) {
  const auto error = pack_error(b, m.status);
  return fb::CreateRefused(b, m.request, error, m.retry_after_s,
                           static_cast<std::uint8_t>(m.reason));
}

auto pack_body(Builder& b, const Models& m) {
  std::vector<std::string> names;
  std::vector<std::uint64_t> max_context;
  std::vector<std::uint32_t> vocab_size;
  for (const ModelInfo& model : m.models) {
    names.push_back(model.name);
    max_context.push_back(model.max_context);
    vocab_size.push_back(model.vocab_size);
  }
  const auto names_offset = pack_strings(b, names);
  const auto context_offset = pack_vector(b, max_context);
  const auto vocab_offset = pack_vector(b, vocab_size);
  return fb::CreateModels(b, m.request, names_offset, context_offset, vocab_offset);
}

auto pack_body(Builder& b, const StatusReply& m) {
  return fb::CreateStatusReply(b, m.request, pack_text(b, m.json));
}

auto pack_body(Builder& b, const Done& m) {
  return fb::CreateDone(b, m.request);
}
auto pack_body(Builder& b, const KeepAlive&) {
  return fb::CreateKeepAlive(b);
}

}  // namespace

void pack(Builder& b, const ToRouter& message) {
  static_assert(std::variant_size_v<ToRouter> == static_cast<std::size_t>(fb::ToRouterBody::MAX));
  const auto body = std::visit([&b](const auto& m) { return pack_body(b, m).Union(); }, message);
  b.Finish(fb::CreateToRouter(b, static_cast<fb::ToRouterBody>(message.index() + 1), body));
}

void pack(Builder& b, const FromRouter& message) {
  static_assert(std::variant_size_v<FromRouter> ==
                static_cast<std::size_t>(fb::FromRouterBody::MAX));
  const auto body = std::visit([&b](const auto& m) { return pack_body(b, m).Union(); }, message);
  b.Finish(fb::CreateFromRouter(b, static_cast<fb::FromRouterBody>(message.index() + 1), body));
}

}  // namespace brigade::wire
