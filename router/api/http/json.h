// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status.h"

namespace brigade::router {

struct JsonMember;

/// A parsed JSON value. Integers stay integers: a number is a double only when it was written with
/// a fraction or an exponent, or is beyond 64 bits. Members keep their order; keys are unique.
struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      data;  ///< null at first

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(data); }
  [[nodiscard]] const bool* as_bool() const { return std::get_if<bool>(&data); }
  [[nodiscard]] const std::string* as_string() const { return std::get_if<std::string>(&data); }
  [[nodiscard]] const Array* as_array() const { return std::get_if<Array>(&data); }
  [[nodiscard]] const Object* as_object() const { return std::get_if<Object>(&data); }
  /// The member's value; null when this is no object or has no such member.
  [[nodiscard]] const JsonValue* find(std::string_view key) const;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

struct JsonLimits {
  std::size_t max_depth = 64;
  std::size_t max_values = 1'000'000;  ///< of all kinds together
  std::size_t max_keys = 100'000;      ///< members of all objects together
};

/// Parses one JSON text, whole. Refused with kInvalidArgument, naming the place: bad syntax, NaN
/// and Infinity, invalid UTF-8, a key twice in one object, anything after the value, and what is
/// beyond the limits.
[[nodiscard]] Result<JsonValue> parse_json(std::string_view text, const JsonLimits& limits = {});

/// What a value looks like in a message: its text, or its kind and size, at most some 80 bytes.
[[nodiscard]] std::string describe(const JsonValue& value);

}  // namespace brigade::router
