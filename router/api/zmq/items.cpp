// SPDX-License-Identifier: Apache-2.0
#include "router/api/zmq/items.h"

#include <utility>

#include "common/base/overloaded.h"
#include "router/api/prompt.h"

namespace brigade::router {
namespace {

Result<std::vector<std::int32_t>> chat_tokens(const ServedModel& model,
                                              const wire::ChatPrompt& prompt) {
  std::vector<model::ChatMessage> messages;
  for (const wire::PromptMessage& message : prompt.messages) {
    messages.push_back({.role = message.role, .content = message.content});
  }
  return prompt_from_messages(model, messages);
}

}  // namespace

void DoorSink::on_output(Output output, TimePoint /*result_at*/) {
  const bool last = output.finish != wire::FinishReason::kNone;
  if (broken_ && !last) return;
  if (broken_) {
    output.finish = wire::FinishReason::kError;
    output.status = resource_exhausted("the door's outbox was full: part of the stream is lost");
  }
  if (last) {
    outbox_->push_always(OutputItem{key_, std::move(output)});
    return;
  }
  const RequestId request = output.request;
  if (outbox_->push(OutputItem{key_, std::move(output)})) return;
  broken_ = true;
  service_.cancel(request);
}

Result<std::vector<std::int32_t>> prompt_tokens(const ServedModel& model,
                                                const wire::Prompt& prompt) {
  return std::visit(
      Overloaded{[&](const wire::TextPrompt& p) {
                   return prompt_from_text(model, p.text, {.parse_special = p.parse_special});
                 },
                 [&](const wire::TokenPrompt& p) { return prompt_from_ids(model, p.token_ids); },
                 [&](const wire::ChatPrompt& p) { return chat_tokens(model, p); }},
      prompt);
}

std::vector<wire::FromRouter> to_messages(std::uint64_t request, Output output) {
  std::vector<wire::FromRouter> messages;
  if (!output.text.empty() || !output.tokens.empty() || !output.prompt_tokens.empty()) {
    messages.push_back(wire::Chunk{.request = request,
                                   .text = std::move(output.text),
                                   .tokens = {std::make_move_iterator(output.tokens.begin()),
                                              std::make_move_iterator(output.tokens.end())},
                                   .token_texts = std::move(output.token_texts),
                                   .prompt_tokens = std::move(output.prompt_tokens)});
  }
  if (output.finish == wire::FinishReason::kError) {
    messages.push_back(wire::Refused{.request = request,
                                     .status = std::move(output.status),
                                     .retry_after_s = output.retry_after_s,
                                     .reason = output.drop_reason});
  } else if (output.finish != wire::FinishReason::kNone) {
    messages.push_back(wire::Finished{.request = request,
                                      .reason = output.finish,
                                      .stop_reason = std::move(output.stop_reason),
                                      .prompt_tokens = output.usage.prompt_tokens,
                                      .completion_tokens = output.usage.completion_tokens,
                                      .cached_tokens = output.usage.cached_tokens});
  }
  return messages;
}

}  // namespace brigade::router
