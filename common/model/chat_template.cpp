// SPDX-License-Identifier: Apache-2.0
#include "common/model/chat_template.h"

#include <algorithm>
#include <utility>

#include "common/base/strings.h"
#include "common/model/jinja/evaluator.h"
#include "common/model/jinja/parser.h"

namespace brigade::model {
namespace {

using jinja::Value;

Value message_value(const ChatMessage& message) {
  std::vector<std::pair<Value, Value>> items;
  items.emplace_back(Value::string("role", /*trusted=*/true),
                     Value::string(message.role, /*trusted=*/false));
  items.emplace_back(Value::string("content", /*trusted=*/true),
                     Value::string(message.content, /*trusted=*/false));
  for (const auto& [name, value] : message.members)
    items.emplace_back(Value::string(name, /*trusted=*/true), value);
  return Value::dict(std::move(items));
}

std::vector<std::pair<std::string, Value>> globals_of(const ChatTemplateInput& input) {
  std::vector<Value> messages;
  for (const ChatMessage& message : input.messages)
    messages.push_back(message_value(message));
  std::vector<std::pair<std::string, Value>> globals;
  globals.emplace_back("messages", Value::list(std::move(messages)));
  globals.emplace_back("add_generation_prompt", Value(input.add_generation_prompt));
  globals.emplace_back("bos_token", Value::string(input.bos_token, /*trusted=*/true));
  globals.emplace_back("eos_token", Value::string(input.eos_token, /*trusted=*/true));
  globals.insert(globals.end(), input.globals.begin(), input.globals.end());
  return globals;
}

/// Some value, so many levels below the globals, is nested deeper than the language allows.
bool too_deep(const std::vector<std::pair<std::string, Value>>& named, int level) {
  return std::any_of(named.begin(), named.end(), [level](const auto& one) {
    return one.second.depth() + level > jinja::kMaxValueDepth;
  });
}

std::vector<PromptSegment> segments_of(const jinja::Text& text) {
  std::vector<PromptSegment> segments;
  std::size_t begin = 0;
  for (const jinja::Text::Run& run : text.runs()) {
    segments.push_back({text.str().substr(begin, run.end - begin), run.trusted});
    begin = run.end;
  }
  return segments;
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Block block;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::parse(std::string_view source) {
  try {
    auto impl = std::make_unique<Impl>(Impl{jinja::parse_template(source)});
    return std::shared_ptr<const ChatTemplate>(new ChatTemplate(std::move(impl)));
  } catch (const jinja::Error& error) {
    const bool has_context = error.status.message().starts_with("chat template");
    return has_context ? error.status : error.status.with_context("chat template");
  }
}

Result<std::vector<PromptSegment>> ChatTemplate::render(const ChatTemplateInput& input) const {
  constexpr int kMemberLevel = 2;  // in a message, in the list of messages
  if (too_deep(input.globals, 0) ||
      std::any_of(input.messages.begin(), input.messages.end(), [](const ChatMessage& message) {
        return too_deep(message.members, kMemberLevel);
      })) {
    return resource_exhausted("chat template: an argument is nested too deep");
  }
  jinja::Context context(input.now_s);
  jinja::Evaluator evaluator(context, globals_of(input));
  try {
    return segments_of(evaluator.render(impl_->block));
  } catch (const jinja::Error& error) {
    return error.is_own
               ? error.status
               : error.status.with_context(str_cat("chat template, line ", evaluator.line()));
  }
}

}  // namespace brigade::model
