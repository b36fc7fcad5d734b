// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/base/strings.h"
#include "router/core/trace_fields.h"

namespace brigade::router {

/// Reads what Trace writes: a visitor for visit_fields that takes each member from a JSON object.
/// The first that is missing or of another type ends it: `status` then names it.
class JsonReader final {
 public:
  explicit JsonReader(const boost::json::object& object) : object_(object) {}

  template <typename... Rest>
  void operator()(std::string_view name, auto& field, Rest&&... rest) {
    if (status_.ok()) {
      const boost::json::value* value = object_.if_contains(name);
      const Status read_status =
          value == nullptr ? data_loss("it is missing") : read(*value, field);
      if (!read_status.ok()) status_ = read_status.with_context(name);
    }
    if constexpr (sizeof...(rest) > 0) (*this)(rest...);
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  static Status wrong(std::string_view expected) {
    return data_loss(str_cat("it is not ", expected));
  }
  static Status read(const boost::json::value& value, bool& field) {
    if (!value.is_bool()) return wrong("true or false");
    field = value.get_bool();
    return {};
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  static Status read(const boost::json::value& value, Number& field) {
    if constexpr (std::is_floating_point_v<Number>) {
      if (value.is_null()) {
        field = std::numeric_limits<Number>::quiet_NaN();
        return {};
      }
    }
    boost::system::error_code error;
    field = value.to_number<Number>(error);
    return error ? wrong("a number in range") : Status();
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  static Status read(const boost::json::value& value, Enum& field) {
    std::underlying_type_t<Enum> number{};
    RETURN_IF_ERROR(read(value, number));
    field = static_cast<Enum>(number);
    return {};
  }
  static Status read(const boost::json::value& value, Duration& field) {
    Duration::rep count = 0;
    RETURN_IF_ERROR(read(value, count));
    field = Duration(count);
    return {};
  }
  static Status read(const boost::json::value& value, std::string& field) {
    if (!value.is_string()) return wrong("a string");
    field.assign(value.get_string().begin(), value.get_string().end());
    return {};
  }
  template <typename T>
  static Status read(const boost::json::value& value, std::optional<T>& field) {
    field.reset();
    return value.is_null() ? Status() : read(value, field.emplace());
  }
  template <typename T>
  static Status read(const boost::json::value& value, std::vector<T>& field) {
    if (!value.is_array()) return wrong("a list");
    field.clear();
    for (const boost::json::value& item : value.get_array())
      RETURN_IF_ERROR(read(item, field.emplace_back()));
    return {};
  }
  template <typename T>
  static Status read(const boost::json::value& value, std::map<std::string, T>& field) {
    if (!value.is_object()) return wrong("an object");
    field.clear();
    for (const auto& [name, item] : value.get_object())
      RETURN_IF_ERROR(read(item, field[std::string(name)]));
    return {};
  }
  static Status read(const boost::json::value& value, Status& field) {
    if (!value.is_object()) return wrong("an object");
    StatusCode code = StatusCode::kOk;
    std::string message;
    JsonReader reader(value.get_object());
    reader("code", code, "message", message);
    field = Status(code, std::move(message));
    return reader.status();
  }
  template <typename Struct>
  requires requires(JsonReader& reader, Struct& field) { visit_fields(reader, field); }
  static Status read(const boost::json::value& value, Struct& field) {
    if (!value.is_object()) return wrong("an object");
    JsonReader reader(value.get_object());
    visit_fields(reader, field);
    return reader.status();
  }

  const boost::json::object& object_;
  Status status_;
};

}  // namespace brigade::router
