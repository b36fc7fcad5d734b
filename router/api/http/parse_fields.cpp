// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/parse_fields.h"

#include <limits>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

constexpr std::size_t kMaxPrompts = 64;
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

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

}  // namespace brigade::router
