// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "router/api/http/responder.h"

namespace brigade::router {

/// /v1/completions: an event's choice has the same shape as a whole answer's. With echo the prompt
/// comes first, in text and in log-probabilities; lists are then as long as prompt and output
/// together, end token included.
class CompletionsResponder final : public Responder {
 public:
  using Responder::Responder;
  [[nodiscard]] std::string_view id_prefix() const override { return "cmpl-"; }
  [[nodiscard]] std::string_view object(bool) const override { return "text_completion"; }
  void append_choice(std::string& out, Choice& choice, const Output& output,
                     bool delta) const override;
  void append_extras(std::string&, const Choice&, bool) const override {}

 private:
  void append_logprobs(std::string& out, Choice& choice, const Output& output) const;
};

}  // namespace brigade::router
