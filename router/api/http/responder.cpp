// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/responder.h"

#include <algorithm>

#include "common/base/strings.h"
#include "router/api/http/chat.h"
#include "router/api/http/completions.h"
#include "router/api/http/json_write.h"

namespace brigade::router {
namespace {

std::string_view finish_text(wire::FinishReason reason) {
  switch (reason) {
    case wire::FinishReason::kStop:
      return "\"stop\"";
    case wire::FinishReason::kLength:
      return "\"length\"";
    default:
      return "null";
  }
}

}  // namespace

std::unique_ptr<Responder> Responder::make(const PreparedGeneration& call) {
  if (call.answer.api == Api::kChat) return std::make_unique<ChatResponder>(call);
  return std::make_unique<CompletionsResponder>(call);
}

bool Responder::has_news(const Choice& choice, const Output& output) const {
  if (output.finish != wire::FinishReason::kNone || !output.text.empty()) return true;
  if (call_.answer.echo && !choice.started) return true;
  const bool tells_tokens = call_.answer.logprobs || call_.answer.return_token_ids;
  return tells_tokens && !output.tokens.empty();
}

void Responder::append_ending(std::string& out, const Output& output) const {
  out += ",\"finish_reason\":";
  out += finish_text(output.finish);
  out += ",\"stop_reason\":";
  const auto& stops = call_.params.stop;
  if (output.stop_reason.empty()) {
    out += "null";
  } else if (std::find(stops.begin(), stops.end(), output.stop_reason) != stops.end()) {
    append_json_string(out, output.stop_reason);
  } else {
    out += output.stop_reason;  // a token id in decimal
  }
  if (!call_.answer.return_token_ids) return;
  std::vector<std::int32_t> ids;
  for (const wire::OutputToken& token : output.tokens)
    ids.push_back(token.token);
  append_ids(out, "token_ids", ids);
}

void Responder::append_ids(std::string& out, std::string_view name,
                           std::span<const std::int32_t> ids) {
  out += str_cat(",\"", name, "\":");
  append_json_list(out, ids,
                   [](std::string& text, std::int32_t id) { append_json_number(text, id); });
}

void Responder::append_prompt_logprobs(std::string& out, const Output& output) const {
  if (call_.answer.prompt_logprobs < 0) return;
  const auto num_top = static_cast<std::size_t>(call_.answer.prompt_logprobs);
  const auto append_entry = [&](std::string& text, std::int32_t token, float logprob,
                                std::size_t rank) {
    text += str_cat("\"", token, "\":{\"logprob\":");
    append_json_number(text, logprob);
    text += ",\"rank\":";
    text += rank == 0 ? "null" : std::to_string(rank);
    text += ",\"decoded_token\":";
    append_json_string(text, bytes_of(token));
    text += '}';
  };
  out += ",\"prompt_logprobs\":";
  append_json_list(out, output.prompt_tokens, [&](std::string& text, const auto& token) {
    if (!token.logprob) {
      text += "null";
      return;
    }
    const auto is_own = [&](const wire::TokenLogprob& top) { return top.token == token.token; };
    const auto own = std::find_if(token.top.begin(), token.top.end(), is_own);
    const auto place = static_cast<std::size_t>(own - token.top.begin());
    text += '{';
    append_entry(text, token.token, *token.logprob, own == token.top.end() ? 0 : place + 1);
    for (std::size_t i = 0; i < std::min(num_top, token.top.size()); ++i) {
      if (is_own(token.top[i])) continue;
      text += ',';
      append_entry(text, token.top[i].token, token.top[i].logprob, i + 1);
    }
    text += '}';
  });
}

void Responder::append_token(std::string& out, std::int32_t id, bool bytes_form) const {
  if (call_.answer.tokens_as_ids) {
    out += str_cat("\"token_id:", id, "\"");
    return;
  }
  const std::string_view bytes = bytes_of(id);
  if (!bytes_form || is_whole_utf8(bytes)) return append_json_string(out, bytes);
  // Parts of characters as OpenAI's completions name them: two of them must not become one key.
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "bytes:";
  for (const char c : bytes) {
    text += "\\x";
    text += kHex[(static_cast<unsigned char>(c) >> 4) & 15];
    text += kHex[static_cast<unsigned char>(c) & 15];
  }
  append_json_string(out, text);
}

void append_usage(std::string& out, const Usage& usage) {
  out += "{\"prompt_tokens\":";
  append_json_number(out, usage.prompt_tokens);
  out += ",\"completion_tokens\":";
  append_json_number(out, usage.completion_tokens);
  out += ",\"total_tokens\":";
  append_json_number(out, usage.prompt_tokens + usage.completion_tokens);
  out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
  append_json_number(out, usage.cached_tokens);
  out += "}}";
}

}  // namespace brigade::router
