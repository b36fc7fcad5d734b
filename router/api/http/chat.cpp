// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/chat.h"

#include "router/api/http/json_write.h"

namespace brigade::router {

void ChatResponder::append_choice(std::string& out, Choice& choice, const Output& output,
                                  bool delta) const {
  out += "{\"index\":";
  append_json_number(out, choice.index);
  if (!delta) {
    out += ",\"message\":{\"role\":\"assistant\",\"content\":";
    append_json_string(out, output.text);
    out += ",\"refusal\":null}";
  } else {
    out += choice.started ? ",\"delta\":{" : ",\"delta\":{\"role\":\"assistant\",";
    // A last event without text says so by an empty delta, unless it is the only one.
    if (!choice.started || !output.text.empty()) {
      out += "\"content\":";
      append_json_string(out, output.text);
    }
    out += '}';
  }
  out += ",\"logprobs\":";
  if (call().answer.logprobs) {
    append_logprobs(out, output);
  } else {
    out += "null";
  }
  append_ending(out, output);
  out += '}';
  choice.started = true;
}

void ChatResponder::append_extras(std::string& out, const Choice& choice, bool first) const {
  append_prompt_logprobs(out, choice.whole);
  if (!call().answer.return_token_ids || !first) return;
  append_ids(out, "prompt_token_ids", choice.prompt->ids);
}

void ChatResponder::append_entry(std::string& out, std::int32_t token, float logprob) const {
  out += "{\"token\":";
  append_token(out, token, /*bytes_form=*/false);
  out += ",\"logprob\":";
  append_json_number(out, logprob);
  out += ",\"bytes\":[";
  const std::string_view bytes = bytes_of(token);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) out += ',';
    append_json_number(out, static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
  }
  out += ']';
}

void ChatResponder::append_logprobs(std::string& out, const Output& output) const {
  out += "{\"content\":[";
  for (std::size_t i = 0; i < output.tokens.size(); ++i) {
    const wire::OutputToken& token = output.tokens[i];
    if (i > 0) out += ',';
    append_entry(out, token.token, token.logprob.value_or(-9999.0F));
    out += ",\"top_logprobs\":[";
    for (std::size_t k = 0; k < token.top.size(); ++k) {
      if (k > 0) out += ',';
      append_entry(out, token.top[k].token, token.top[k].logprob);
      out += '}';
    }
    out += "]}";
  }
  out += "],\"refusal\":null}";
}

}  // namespace brigade::router
