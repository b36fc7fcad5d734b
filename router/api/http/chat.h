// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "router/api/http/responder.h"

namespace brigade::router {

/// /v1/chat/completions. The role comes with the first piece of content and the finish reason with
/// the last: load generators take the first event for the first token.
class ChatResponder final : public Responder {
 public:
  using Responder::Responder;
  [[nodiscard]] std::string_view id_prefix() const override { return "chatcmpl-"; }
  [[nodiscard]] std::string_view object(bool delta) const override {
    return delta ? "chat.completion.chunk" : "chat.completion";
  }
  void append_choice(std::string& out, Choice& choice, const Output& output,
                     bool delta) const override;
  void append_extras(std::string& out, const Choice& choice, bool first) const override;

 private:
  void append_logprobs(std::string& out, const Output& output) const;
  void append_entry(std::string& out, std::int32_t token, float logprob) const;
};

}  // namespace brigade::router
