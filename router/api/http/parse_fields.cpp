// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/parse_fields.h"

#include <algorithm>
#include <limits>

#include "common/base/strings.h"
#include "router/core/limits.h"

namespace brigade::router {
namespace {

constexpr std::size_t kMaxPrompts = 64;
constexpr std::size_t kMaxMessages = 2048;
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

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
  const JsonValue* calls = value.find("tool_calls");
  if (calls != nullptr && calls->as_array() != nullptr && !calls->as_array()->empty()) {
    return fields.fail(name + ".tool_calls", name + ".tool_calls is not supported yet.");
  }
  std::string content = read_content(fields, name + ".content", role, value.find("content"));
  out.push_back({role, std::move(content)});
}

void read_stop(FieldReader& fields, std::vector<std::string>& out) {
  const JsonValue* value = fields.get("stop");
  if (value == nullptr) return;
  const auto add = [&](const JsonValue& item) {
    const std::string* text = item.as_string();
    if (text == nullptr || text->empty() || text->size() > kMaxStopBytes) {
      return fields.refuse(
          "stop", str_cat("one or a list of strings of 1 to ", kMaxStopBytes, " bytes"), item);
    }
    out.push_back(*text);
  };
  const auto* list = value->as_array();
  if (list == nullptr) return add(*value);
  if (list->size() > kMaxStopStrings) {
    return fields.refuse("stop", str_cat("at most ", kMaxStopStrings, " strings"), *value);
  }
  for (const JsonValue& item : *list)
    add(item);
}

}  // namespace

std::optional<ApiError> parse_object(std::string_view body, JsonValue& out) {
  auto parsed = parse_json(body);
  if (!parsed.ok()) return from_status(parsed.status());
  out = std::move(parsed).value();
  if (out.as_object() != nullptr) return std::nullopt;
  return ApiError{.status = 400,
                  .message = str_cat("The body must be a JSON object, not ", describe(out), ".")};
}

void read_token_ids(FieldReader& fields, std::string_view name, const JsonValue& value,
                    std::vector<std::int32_t>& out) {
  const auto* list = value.as_array();
  if (list == nullptr) return fields.refuse(name, "a list of token ids", value);
  out.reserve(list->size());
  for (const JsonValue& item : *list) {
    const auto id = integer_in(item, 0, kMaxInt32);
    if (!id) return fields.refuse(name, "a list of token ids", item);
    out.push_back(static_cast<std::int32_t>(*id));
  }
}

void read_prompts(FieldReader& fields, std::vector<PromptInput>& out) {
  const JsonValue* value = fields.get("prompt");
  if (value == nullptr) return fields.fail("prompt", "prompt is missing.");
  if (const std::string* text = value->as_string()) return out.emplace_back(*text), void();
  const auto* list = value->as_array();
  if (list == nullptr || list->empty()) {
    return fields.refuse("prompt", "text, token ids, or a list of either, not empty", *value);
  }
  const bool is_one = std::holds_alternative<std::int64_t>(list->front().data);
  if (!is_one && list->size() > kMaxPrompts) {
    return fields.refuse("prompt", str_cat("at most ", kMaxPrompts, " prompts"), *value);
  }
  if (is_one) {
    std::vector<std::int32_t> ids;
    read_token_ids(fields, "prompt", *value, ids);
    out.emplace_back(std::move(ids));
    return;
  }
  for (const JsonValue& item : *list) {
    if (const std::string* text = item.as_string()) {
      out.emplace_back(*text);
    } else {
      std::vector<std::int32_t> ids;
      read_token_ids(fields, "prompt", item, ids);
      out.emplace_back(std::move(ids));
    }
  }
}

void read_messages(FieldReader& fields, std::vector<model::ChatMessage>& out) {
  const JsonValue* value = fields.get("messages");
  if (value == nullptr) return fields.fail("messages", "messages is missing.");
  const auto* list = value->as_array();
  if (list == nullptr || list->empty() || list->size() > kMaxMessages) {
    return fields.refuse("messages", str_cat("a list of 1 to ", kMaxMessages, " messages"), *value);
  }
  for (std::size_t i = 0; i < list->size() && fields.ok(); ++i) {
    read_message(fields, str_cat("messages[", i, "]"), (*list)[i], out);
  }
}

void read_sampling(FieldReader& fields, wire::GenerationParams& out) {
  if (const auto t = fields.number("temperature", 0, kMaxTemperature)) {
    out.temperature = static_cast<float>(*t);
  }
  if (const auto p = fields.number("top_p", 0, 1)) {
    out.top_p = static_cast<float>(*p);
    if (!(out.top_p > 0)) fields.fail("top_p", "top_p must be above 0.");
  }
  if (const auto k = fields.integer("top_k", -1, kMaxInt32)) {
    out.top_k = static_cast<std::int32_t>(*k);
  }
  out.seed = fields.bits("seed");
  if (const auto m = fields.integer("min_tokens", 0, kMaxInt32)) {
    out.min_tokens = static_cast<std::uint32_t>(*m);
  }
  out.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  if (const auto p = fields.integer("priority", -kMaxPriority, kMaxPriority)) {
    out.priority = static_cast<std::int32_t>(*p);
  }
  if (const auto d = fields.integer("deadline_ms", 1, kMaxInt32)) {
    out.deadline_ms = static_cast<std::uint32_t>(*d);
  }
  read_stop(fields, out.stop);
  if (const JsonValue* ids = fields.get("stop_token_ids")) {
    read_token_ids(fields, "stop_token_ids", *ids, out.stop_token_ids);
    if (out.stop_token_ids.size() > kMaxStopTokens) {
      fields.refuse("stop_token_ids", str_cat("at most ", kMaxStopTokens, " ids"), *ids);
    }
  }
}

}  // namespace brigade::router
