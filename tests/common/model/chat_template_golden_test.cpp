// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "common/model/chat_template.h"
#include "tests/common/model/json_values.h"

namespace brigade::model {
namespace {

/// Of tests/golden/make_template_golden.py.
const boost::json::value& golden() {
  static const boost::json::value value =
      boost::json::parse(read_file("tests/golden/templates.json"));
  return value;
}

std::string joined(const std::vector<PromptSegment>& segments) {
  std::string text;
  for (const PromptSegment& segment : segments)
    text += segment.text;
  return text;
}

void add_globals(const boost::json::value& variables, ChatTemplateInput& input) {
  for (const auto& variable : variables.as_object()) {
    input.globals.emplace_back(std::string(variable.key()), to_value(variable.value()));
  }
}

/// Renders and compares with the outcome of Jinja; an error must be an error here too.
void check_case(const boost::json::value& test_case, const ChatTemplateInput& input) {
  const std::string source(test_case.at("template").as_string());
  CAPTURE(source);
  const auto parsed = ChatTemplate::parse(source);
  const auto rendered =
      parsed.ok() ? (*parsed)->render(input) : Result<std::vector<PromptSegment>>(parsed.status());
  const boost::json::value* output = test_case.as_object().if_contains("output");
  if (output == nullptr) {
    CAPTURE(std::string(test_case.at("error").as_string()));
    CHECK(!rendered.ok());
    return;
  }
  CAPTURE(rendered.status().message());
  CHECK(rendered.ok());
  if (rendered.ok()) CHECK(joined(*rendered) == std::string(output->as_string()));
}

TEST_CASE("conversations are rendered as Jinja with HF's settings renders them") {
  REQUIRE(golden().at("magic").as_string() == "brigade-template-golden");
  for (const auto& test_case : golden().at("chats").as_array()) {
    const std::string name(test_case.at("name").as_string());
    CAPTURE(name);
    ChatTemplateInput input{.bos_token = "<s>", .eos_token = "</s>"};
    input.now_s = golden().at("now_s").as_int64();
    const auto& variables = test_case.at("variables");
    input.add_generation_prompt = variables.at("add_generation_prompt").as_bool();
    for (const auto& message : variables.at("messages").as_array()) {
      input.messages.push_back({std::string(message.at("role").as_string()),
                                std::string(message.at("content").as_string())});
    }
    check_case(test_case, input);
  }
}

TEST_CASE("each construct of the language gives what Jinja gives") {
  ChatTemplateInput input{.add_generation_prompt = false, .bos_token = "<s>", .eos_token = "</s>"};
  input.now_s = golden().at("now_s").as_int64();
  add_globals(golden().at("variables"), input);
  for (const auto& test_case : golden().at("small").as_array())
    check_case(test_case, input);
}

}  // namespace
}  // namespace brigade::model
