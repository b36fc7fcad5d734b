// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/parse_messages.h"

#include <algorithm>

#include "common/base/strings.h"
#include "router/api/http/template_value.h"

namespace brigade::router {
namespace {

constexpr std::size_t kMaxMessages = 2048;
/// What a request says by fields of its own, not among the template's arguments.
constexpr std::string_view kOwnNames[] = {"messages", "tools", "add_generation_prompt", "bos_token",
                                          "eos_token"};

constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};

/// Text of the parts, one line each, as templates that take strings are given them.
std::string read_parts(FieldReader& fields, const std::string& name,
                       const JsonValue::Array& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part_name = str_cat(name, "[", i, "]");
    const JsonValue* type = parts[i].find("type");
    const JsonValue* part = parts[i].find("text");
    if (type == nullptr || type->as_string() == nullptr) {
      fields.fail(part_name, str_cat(part_name, " must be an object with a type."));
    } else if (*type->as_string() != "text") {
      fields.fail(part_name + ".type", str_cat(part_name, ".type must be \"text\", not ",
                                               describe(*type), ": this model takes text."));
    } else if (part == nullptr || part->as_string() == nullptr) {
      fields.fail(part_name + ".text", str_cat(part_name, ".text must be a string."));
    } else {
      if (i > 0) text += '\n';
      text += *part->as_string();
    }
  }
  return text;
}

std::string read_content(FieldReader& fields, const std::string& name, const std::string& role,
                         const JsonValue* content) {
  if (content == nullptr || content->is_null()) {
    if (role != "assistant") {
      fields.fail(name, str_cat(name, " may be missing or null only for an assistant."));
    }
    return {};
  }
  if (const std::string* text = content->as_string()) return *text;
  if (const auto* parts = content->as_array()) return read_parts(fields, name, *parts);
  fields.refuse(name, "a string, a list of parts or null", *content);
  return {};
}

/// The arguments of a call come as JSON text; templates take them as what the text says.
model::jinja::Value read_call(FieldReader& fields, const std::string& name,
                              const JsonValue& value) {
  using model::jinja::Value;
  const JsonValue* function = value.find("function");
  const JsonValue* called = function == nullptr ? nullptr : function->find("name");
  if (called == nullptr || called->as_string() == nullptr) {
    fields.fail(name + ".function.name", name + ".function.name must be a string.");
    return {};
  }
  JsonValue arguments{JsonValue::Object{}};
  const JsonValue* given = function->find("arguments");
  if (given != nullptr && given->as_string() != nullptr && !given->as_string()->empty()) {
    auto parsed = parse_json(*given->as_string());
    if (parsed.ok()) arguments = std::move(parsed).value();
    if (!parsed.ok() || arguments.as_object() == nullptr) {
      fields.refuse(name + ".function.arguments", "a JSON object as text", *given);
    }
  } else if (given != nullptr && given->as_object() != nullptr) {
    arguments = *given;
  }
  const auto text = [](std::string_view word) { return Value::string(word, /*trusted=*/false); };
  const JsonValue* id = value.find("id");
  std::vector<std::pair<Value, Value>> call;
  if (id != nullptr) call.emplace_back(text("id"), to_template_value(*id));
  call.emplace_back(text("type"), text("function"));
  call.emplace_back(text("function"),
                    Value::dict({{text("name"), to_template_value(*called)},
                                 {text("arguments"), to_template_value(arguments)}}));
  return Value::dict(std::move(call));
}

void read_tool_calls(FieldReader& fields, const std::string& name, const JsonValue* value,
                     model::ChatMessage& out) {
  if (value == nullptr || value->is_null()) return;
  const auto* list = value->as_array();
  if (list == nullptr) return fields.refuse(name, "a list of tool calls", *value);
  if (list->empty()) return;
  if (out.role != "assistant") return fields.fail(name, name + " are only an assistant's.");
  std::vector<model::jinja::Value> calls;
  for (std::size_t i = 0; i < list->size(); ++i)
    calls.push_back(read_call(fields, str_cat(name, "[", i, "]"), (*list)[i]));
  out.members.emplace_back("tool_calls", model::jinja::Value::list(std::move(calls)));
}

void read_message(FieldReader& fields, const std::string& name, const JsonValue& value,
                  std::vector<model::ChatMessage>& out) {
  if (value.as_object() == nullptr) return fields.refuse(name, "an object", value);
  const JsonValue* role_value = value.find("role");
  const std::string* given = role_value == nullptr ? nullptr : role_value->as_string();
  if (given == nullptr) return fields.fail(name + ".role", name + ".role must be a string.");
  // OpenAI's newer word for the same thing; no template here knows it.
  const std::string role = *given == "developer" ? "system" : *given;
  if (std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles)) {
    return fields.fail(name + ".role",
                       str_cat(name, ".role must be system, developer, user, assistant or tool, ",
                               "not ", describe(*role_value), "."));
  }
  model::ChatMessage message{.role = role};
  message.content = read_content(fields, name + ".content", role, value.find("content"));
  read_tool_calls(fields, name + ".tool_calls", value.find("tool_calls"), message);
  for (const char* member : {"tool_call_id", "name"}) {
    const JsonValue* text = value.find(member);
    if (text == nullptr || text->is_null()) continue;
    if (text->as_string() == nullptr) {
      return fields.refuse(str_cat(name, ".", member), "a string", *text);
    }
    message.members.emplace_back(member, to_template_value(*text));
  }
  out.push_back(std::move(message));
}

/// Tools are shown to the model only where it is not asked to call one: its calls are not read yet.
void read_tools(FieldReader& fields, ChatArgs& out) {
  const JsonValue* choice = fields.get("tool_choice");
  const std::string* word = choice == nullptr ? nullptr : choice->as_string();
  const bool is_none = word != nullptr && *word == "none";
  if (choice != nullptr && !is_none && (word == nullptr || *word != "auto")) {
    return fields.fail({.status = 400,
                        .message = str_cat("tool_choice is not supported yet: only \"none\" or "
                                           "\"auto\" is taken, not ",
                                           describe(*choice), "."),
                        .param = "tool_choice",
                        .code = "unsupported_parameter"});
  }
  const JsonValue* tools = fields.get("tools");
  if (tools == nullptr) return;
  const auto* list = tools->as_array();
  if (list == nullptr) return fields.refuse("tools", "a list", *tools);
  if (list->empty()) return;
  if (!is_none) {
    return fields.fail({.status = 400,
                        .message =
                            "tools is not supported yet: with tool_choice \"none\" tools are "
                            "shown to the model, but it cannot be asked to call one.",
                        .param = "tools",
                        .code = "unsupported_parameter"});
  }
  out.globals.emplace_back("tools", to_template_value(*tools));
}

void read_template_kwargs(FieldReader& fields, ChatArgs& out) {
  const JsonValue* kwargs = fields.get("chat_template_kwargs");
  if (kwargs == nullptr) return;
  const auto* object = kwargs->as_object();
  if (object == nullptr) return fields.refuse("chat_template_kwargs", "an object", *kwargs);
  for (const JsonMember& member : *object) {
    if (std::find(std::begin(kOwnNames), std::end(kOwnNames), member.key) != std::end(kOwnNames)) {
      return fields.fail("chat_template_kwargs",
                         str_cat("chat_template_kwargs must not have ", quoted(member.key),
                                 ": the request has a field for it, or the model."));
    }
    out.globals.emplace_back(member.key, to_template_value(member.value));
  }
}

}  // namespace

void read_chat_args(FieldReader& fields, ChatArgs& out) {
  const JsonValue* value = fields.get("messages");
  if (value == nullptr) return fields.fail("messages", "messages is missing.");
  const auto* list = value->as_array();
  if (list == nullptr || list->empty() || list->size() > kMaxMessages) {
    return fields.refuse("messages", str_cat("a list of 1 to ", kMaxMessages, " messages"), *value);
  }
  for (std::size_t i = 0; i < list->size() && fields.ok(); ++i) {
    read_message(fields, str_cat("messages[", i, "]"), (*list)[i], out.messages);
  }
  out.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  const auto prompt = fields.boolean("add_generation_prompt");
  out.add_generation_prompt = prompt.value_or(!out.continue_final_message);
  if (out.continue_final_message && out.add_generation_prompt) {
    fields.fail("continue_final_message",
                "continue_final_message and add_generation_prompt cannot both be true: the final "
                "message is either continued or answered.");
  }
  read_tools(fields, out);
  read_template_kwargs(fields, out);
}

}  // namespace brigade::router
