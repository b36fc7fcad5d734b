// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <iomanip>
#include <sstream>

#include "common/model/chat_template.h"
#include "tests/common/model/json_values.h"

namespace brigade::model {
namespace {

std::string joined(const std::vector<PromptSegment>& segments) {
  std::string text;
  for (const PromptSegment& segment : segments)
    text += segment.text;
  return text;
}

/// FNV-1a, as make_template_golden.py has it.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::ostringstream out;
  out << std::hex << std::setw(16) << std::setfill('0') << hash;
  return out.str();
}

void add_globals(const boost::json::value& variables, ChatTemplateInput& input) {
  for (const auto& variable : variables.as_object()) {
    input.globals.emplace_back(std::string(variable.key()), to_value(variable.value()));
  }
}

/// Renders and compares with the outcome of Jinja; an error must be an error here too.
void check_case(const boost::json::object& outcome, std::string_view source,
                const ChatTemplateInput& input) {
  const auto parsed = ChatTemplate::parse(source);
  const auto rendered =
      parsed.ok() ? (*parsed)->render(input) : Result<std::vector<PromptSegment>>(parsed.status());
  if (const auto* error = outcome.if_contains("error")) {
    CAPTURE(std::string(error->as_string()));
    CHECK(!rendered.ok());
    return;
  }
  CAPTURE(rendered.status().message());
  CHECK(rendered.ok());
  if (!rendered.ok()) return;
  const std::string text = joined(*rendered);
  if (const auto* output = outcome.if_contains("output")) {
    CHECK(text == std::string(output->as_string()));
  } else {
    CAPTURE(text);
    CHECK(hash_of(text) == std::string(outcome.at("hash").as_string()));
  }
}

/// The text of the template, from the file itself or from the one it names.
std::string source_of(const boost::json::value& golden, std::string_view name) {
  const auto* source = golden.at("templates").as_object().if_contains(name);
  if (source != nullptr) return std::string(source->as_string());
  const std::string path(golden.at("files").at(name).as_string());
  const std::string text = read_file(path.starts_with('/') ? path : "tests/golden/" + path);
  CAPTURE(path);
  REQUIRE_FALSE(text.empty());
  return text;
}

/// All of a file of make_template_golden.py.
void check_file(const std::string& path) {
  const auto golden = boost::json::parse(read_file(path));
  REQUIRE(golden.at("magic").as_string() == "brigade-template-golden");
  ChatTemplateInput base{.add_generation_prompt = false, .bos_token = "<s>", .eos_token = "</s>"};
  base.now_s = golden.at("now_s").as_int64();
  for (const auto& value : golden.at("chats").as_array()) {
    const auto& test_case = value.as_object();
    const auto& name = test_case.at("template").as_string();
    const auto& conversation = test_case.at("conversation").as_string();
    CAPTURE(std::string(name));
    CAPTURE(std::string(conversation));
    ChatTemplateInput input = base;
    input.add_generation_prompt = test_case.at("add_generation_prompt").as_bool();
    add_globals(golden.at("conversations").at(conversation), input);
    check_case(test_case, source_of(golden, name), input);
  }
  ChatTemplateInput input = base;
  add_globals(golden.at("variables"), input);
  for (const auto& test_case : golden.at("small").as_array()) {
    const std::string source(test_case.at("template").as_string());
    CAPTURE(source);
    check_case(test_case.as_object(), source, input);
  }
}

TEST_CASE("conversations and constructs are rendered as Jinja with HF's settings renders them") {
  check_file("tests/golden/templates.json");
}

TEST_CASE("templates are rendered as the file in BRIGADE_TEMPLATE_GOLDEN expects") {
  const char* path = std::getenv("BRIGADE_TEMPLATE_GOLDEN");
  if (path != nullptr) check_file(path);
}

}  // namespace
}  // namespace brigade::model
