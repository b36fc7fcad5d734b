// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace brigade::model {

class GgufFile;

struct ChatMessage {
  std::string role;
  std::string content;
};

/// A piece of a rendered prompt. `trusted` text came from the template: its special tokens count. The rest came from
/// messages: there `<|im_end|>` is only text.
struct PromptSegment {
  std::string text;
  bool trusted = false;
};

struct ChatTemplateInput {
  std::vector<ChatMessage> messages;
  bool add_generation_prompt = true;
  std::string bos_token;
  std::string eos_token;
};

/// A model's Jinja chat template, parsed once. Rendering is bounded in steps, depth and output, reads nothing from
/// outside, and is safe from any thread. It behaves as HF's renderer does (trim_blocks, lstrip_blocks).
class ChatTemplate final {
 public:
  /// A syntax error names line and what was expected.
  static Result<std::shared_ptr<const ChatTemplate>> parse(std::string_view source);
  ~ChatTemplate();

  /// kInvalidArgument with the template's own words when it calls raise_exception; kResourceExhausted past a bound.
  [[nodiscard]] Result<std::vector<PromptSegment>> render(const ChatTemplateInput& input) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace brigade::model
