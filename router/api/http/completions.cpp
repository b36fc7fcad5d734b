// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/completions.h"

#include <algorithm>

#include "router/api/http/json_write.h"

namespace brigade::router {
namespace {

/// Characters that start in these bytes: a token in the middle of one adds none.
std::uint64_t characters(std::string_view bytes) {
  return static_cast<std::uint64_t>(std::count_if(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void append_logprob(std::string& out, const std::optional<float>& logprob) {
  if (logprob) {
    append_json_number(out, *logprob);
  } else {
    out += "null";
  }
}

}  // namespace

void CompletionsResponder::append_choice(std::string& out, Choice& choice, const Output& output,
                                         bool) const {
  const bool echoes = call().answer.echo && !choice.started;
  out += "{\"index\":";
  append_json_number(out, choice.index);
  out += ",\"text\":";
  append_json_string(out, echoes ? choice.prompt->echo + output.text : output.text);
  out += ",\"logprobs\":";
  if (call().answer.logprobs) {
    append_logprobs(out, choice, output);
  } else {
    out += "null";
  }
  append_ending(out, output);
  if (call().answer.return_token_ids && !choice.started) {
    append_ids(out, "prompt_token_ids", choice.prompt->ids);
  }
  append_prompt_logprobs(out, output);
  out += '}';
  choice.started = true;
}

void CompletionsResponder::append_logprobs(std::string& out, Choice& choice,
                                           const Output& output) const {
  // More may have been asked for the prompt, in another shape.
  const auto num_top = static_cast<std::size_t>(std::max(call().params.num_logprobs, 0));
  std::string tokens;
  std::string logprobs;
  std::string tops;
  std::string offsets;
  const auto add = [&](const wire::OutputToken& token, bool skip_text = false) {
    const char* comma = tokens.empty() ? "" : ",";
    tokens += comma;
    append_token(tokens, token.token, /*bytes_form=*/true);
    logprobs += comma;
    append_logprob(logprobs, token.logprob);
    tops += comma;
    offsets += comma;
    append_json_number(offsets, choice.text_offset);
    if (!skip_text) choice.text_offset += characters(bytes_of(token.token));
    if (!token.logprob) {
      tops += "null";
      return;
    }
    // The token itself is always there, from the same number: a scorer asks whether it is the
    // greatest.
    tops += '{';
    append_token(tops, token.token, /*bytes_form=*/true);
    tops += ':';
    append_json_number(tops, *token.logprob);
    for (std::size_t i = 0; i < std::min(num_top, token.top.size()); ++i) {
      const wire::TokenLogprob& top = token.top[i];
      if (top.token == token.token) continue;
      tops += ',';
      append_token(tops, top.token, /*bytes_form=*/true);
      tops += ':';
      append_json_number(tops, top.logprob);
    }
    tops += '}';
  };
  for (std::size_t i = 0; call().answer.echo && i < output.prompt_tokens.size(); ++i) {
    add(output.prompt_tokens[i], /*skip_text=*/i == 0 && choice.prompt->bos_added);
  }
  for (const wire::OutputToken& token : output.tokens)
    add(token);
  out += "{\"tokens\":[" + tokens + "],\"token_logprobs\":[" + logprobs + "],\"top_logprobs\":[" +
         tops + "],\"text_offset\":[" + offsets + "]}";
}

}  // namespace brigade::router
