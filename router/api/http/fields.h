// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "router/api/http/error.h"
#include "router/api/http/json.h"

namespace brigade::router {

/// Reads the members of a request's object by name and kind. A member that is missing or null is
/// absent. The first one of a wrong kind or out of range is kept as the error, with its name and
/// value; what is read after that is absent too. Nothing is converted: 1.0 and "1" are no integers.
class FieldReader final {
 public:
  explicit FieldReader(const JsonValue& object, std::string prefix = {})
      : object_(object), prefix_(std::move(prefix)) {}

  /// Null when absent.
  [[nodiscard]] const JsonValue* get(std::string_view name) const;
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max);
  /// Any integer of 64 bits, signed or not, as its bits.
  std::optional<std::uint64_t> bits(std::string_view name);
  /// Finite and in [min, max].
  std::optional<double> number(std::string_view name, double min, double max);
  std::optional<std::string> string(std::string_view name, std::size_t max_bytes);

  void fail(std::string_view name, std::string message);
  /// As fail, saying `wanted` and what was there.
  void refuse(std::string_view name, std::string_view wanted, const JsonValue& value);
  void fail(ApiError error);
  [[nodiscard]] const std::optional<ApiError>& error() const { return error_; }
  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  /// The name with the object's own path in front.
  [[nodiscard]] std::string full_name(std::string_view name) const;

 private:
  const JsonValue& object_;
  std::string prefix_;
  std::optional<ApiError> error_;
};

/// The value as an integer in [min, max]; none when it is of another kind or outside.
[[nodiscard]] std::optional<std::int64_t> integer_in(const JsonValue& value, std::int64_t min,
                                                     std::int64_t max);

}  // namespace brigade::router
