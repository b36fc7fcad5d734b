// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/fields.h"

#include "common/base/strings.h"

namespace brigade::router {

std::optional<std::int64_t> integer_in(const JsonValue& value, std::int64_t min, std::int64_t max) {
  const auto* integer = std::get_if<std::int64_t>(&value.data);
  if (integer == nullptr || *integer < min || *integer > max) return std::nullopt;
  return *integer;
}

const JsonValue* FieldReader::get(std::string_view name) const {
  if (!ok()) return nullptr;
  const JsonValue* value = object_.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<bool> FieldReader::boolean(std::string_view name) {
  const JsonValue* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (const bool* flag = value->as_bool()) return *flag;
  refuse(name, "true or false", *value);
  return std::nullopt;
}

std::optional<std::int64_t> FieldReader::integer(std::string_view name, std::int64_t min,
                                                 std::int64_t max) {
  const JsonValue* value = get(name);
  if (value == nullptr) return std::nullopt;
  const auto integer = integer_in(*value, min, max);
  if (!integer) refuse(name, str_cat("an integer from ", min, " to ", max), *value);
  return integer;
}

std::optional<std::uint64_t> FieldReader::bits(std::string_view name) {
  const JsonValue* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* i = std::get_if<std::int64_t>(&value->data)) {
    return static_cast<std::uint64_t>(*i);
  }
  if (const auto* u = std::get_if<std::uint64_t>(&value->data)) return *u;
  refuse(name, "an integer of 64 bits", *value);
  return std::nullopt;
}

std::optional<double> FieldReader::number(std::string_view name, double min, double max) {
  const JsonValue* value = get(name);
  if (value == nullptr) return std::nullopt;
  std::optional<double> number;
  if (const auto* i = std::get_if<std::int64_t>(&value->data)) number = static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value->data)) number = *d;
  // Written so that a NaN fails.
  if (number && *number >= min && *number <= max) return number;
  refuse(name, str_cat("a number from ", min, " to ", max), *value);
  return std::nullopt;
}

std::optional<std::string> FieldReader::string(std::string_view name, std::size_t max_bytes) {
  const JsonValue* value = get(name);
  if (value == nullptr) return std::nullopt;
  const std::string* text = value->as_string();
  if (text != nullptr && text->size() <= max_bytes) return *text;
  refuse(name, str_cat("a string of at most ", max_bytes, " bytes"), *value);
  return std::nullopt;
}

void FieldReader::fail(std::string_view name, std::string message) {
  fail(bad_field(full_name(name), std::move(message)));
}

void FieldReader::refuse(std::string_view name, std::string_view wanted, const JsonValue& value) {
  fail(name, str_cat(full_name(name), " must be ", wanted, ", not ", describe(value), "."));
}

void FieldReader::fail(ApiError error) {
  if (!error_) error_ = std::move(error);
}

std::string FieldReader::full_name(std::string_view name) const {
  return prefix_.empty() ? std::string(name) : str_cat(prefix_, ".", name);
}

}  // namespace brigade::router
