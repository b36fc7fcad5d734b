// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chat template: it is refused, or rendered within its bounds. Text that no message
// wrote is all that is trusted.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/model/chat_template.h"
#include "common/model/jinja/budget.h"

namespace {

using brigade::model::ChatTemplateInput;
using brigade::model::jinja::Value;

/// A character of private use.
constexpr std::string_view kSecret = "\ue5ec";

/// Whether a template could write the character by itself: as it is, by an escape, by its number.
bool can_spell_secret(std::string_view source) {
  return source.find(kSecret) != std::string_view::npos ||
         source.find('\\') != std::string_view::npos || source.find("%c") != std::string_view::npos;
}

ChatTemplateInput make_input() {
  ChatTemplateInput input{.bos_token = "<s>", .eos_token = "</s>", .now_s = 1753704615};
  input.messages = {{"system", "Be brief."}, {"user", std::string(kSecret)}, {"assistant", "b"}};
  input.globals.emplace_back("n", Value(std::int64_t{7}));
  input.globals.emplace_back("xs", Value::list({Value(std::int64_t{3}), Value(1.5), Value(true)}));
  input.globals.emplace_back(
      "tools", Value::list({Value::dict({{Value::string("name", true), Value::string("f", false)},
                                         {Value::string("none", true), Value()}})}));
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace brigade::model;
  static const ChatTemplateInput kInput = make_input();
  const std::string_view source(reinterpret_cast<const char*>(bytes), size);
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return 0;
  const auto rendered = (*parsed)->render(kInput);
  if (!rendered.ok()) return 0;
  std::size_t total = 0;
  for (const PromptSegment& segment : *rendered) {
    total += segment.text.size();
    const bool has_secret = segment.text.find(kSecret) != std::string::npos;
    INVARIANT(!segment.trusted || !has_secret || can_spell_secret(source))
        << "a message's text is trusted";
  }
  INVARIANT_LE(total, jinja::kMaxOutputBytes);
  return 0;
}
