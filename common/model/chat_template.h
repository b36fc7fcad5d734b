// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/model/jinja/value.h"

namespace brigade::model {

class GgufFile;

struct ChatMessage {
  std::string role;
  std::string content;
  /// More of it, as the template sees it: tool calls, the call that a tool answers, a name.
  std::vector<std::pair<std::string, jinja::Value>> members;
};

/// A piece of a rendered prompt. `trusted` text came from the template: its special tokens count.
/// The rest came from messages: there `<|im_end|>` is only text.
struct PromptSegment {
  std::string text;
  bool trusted = false;
};

struct ChatTemplateInput {
  std::vector<ChatMessage> messages;
  bool add_generation_prompt = true;
  std::string bos_token;
  std::string eos_token;
  /// More variables (tools, a request's template arguments), or other values for those above,
  /// `messages` included. Strings that come from a request are made untrusted.
  std::vector<std::pair<std::string, jinja::Value>> globals;
  /// What strftime_now prints: seconds since 1970, the zone's offset added. Rendering reads no
  /// clock.
  std::int64_t now_s = 0;
};

/// A model's Jinja chat template, parsed once. Rendering is bounded in steps, depth and output,
/// reads nothing from outside, and is safe from any thread. It behaves as HF's renderer does
/// (trim_blocks, lstrip_blocks).
class ChatTemplate final {
 public:
  /// A syntax error names line and what was expected.
  static Result<std::shared_ptr<const ChatTemplate>> parse(std::string_view source);
  ~ChatTemplate();

  /// kInvalidArgument with the template's own words when it calls raise_exception, and with the
  /// line for other errors; kResourceExhausted past a bound.
  [[nodiscard]] Result<std::vector<PromptSegment>> render(const ChatTemplateInput& input) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::model
