// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/check.h"

namespace brigade {

/// Why something could not be done. The numbers travel on the wire: append only.
enum class StatusCode : std::uint8_t {
  kOk = 0,
  kInvalidArgument = 1,    ///< the caller's fault: will fail again unchanged
  kNotFound = 2,           ///< no such model, replica, request, file
  kResourceExhausted = 3,  ///< a bound is reached: try again later
  kDeadlineExceeded = 4,
  kCancelled = 5,
  kUnavailable = 6,         ///< no replica, lost peer: try again elsewhere or later
  kFailedPrecondition = 7,  ///< the system is not in a state for this
  kDataLoss = 8,            ///< bytes from outside that are not what they claim to be
  kPermissionDenied = 9,
  kInternal = 10,  ///< our fault
};

[[nodiscard]] std::string_view to_string(StatusCode code);

/// The outcome of an operation: ok, or a code and one line for people that says what happened, with
/// the values, and what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const { return code_ == StatusCode::kOk; }
  [[nodiscard]] StatusCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }

  /// The same status with `prefix: ` before its message; ok stays ok.
  [[nodiscard]] Status with_context(std::string_view prefix) const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status invalid_argument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
inline Status not_found(std::string message) {
  return {StatusCode::kNotFound, std::move(message)};
}
inline Status resource_exhausted(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
inline Status deadline_exceeded(std::string message) {
  return {StatusCode::kDeadlineExceeded, std::move(message)};
}
inline Status cancelled(std::string message) {
  return {StatusCode::kCancelled, std::move(message)};
}
inline Status unavailable(std::string message) {
  return {StatusCode::kUnavailable, std::move(message)};
}
inline Status failed_precondition(std::string message) {
  return {StatusCode::kFailedPrecondition, std::move(message)};
}
inline Status data_loss(std::string message) {
  return {StatusCode::kDataLoss, std::move(message)};
}
inline Status internal_error(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}

/// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit on purpose
    INVARIANT(!status_.ok()) << "a Result without a value needs an error";
  }

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Status& status() const { return status_; }

  T& value() & {
    INVARIANT(ok()) << status_.message();
    return *value_;
  }
  const T& value() const& {
    INVARIANT(ok()) << status_.message();
    return *value_;
  }
  T&& value() && {
    INVARIANT(ok()) << status_.message();
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

#define BRIGADE_CONCAT_INNER(a, b) a##b
#define BRIGADE_CONCAT(a, b) BRIGADE_CONCAT_INNER(a, b)

/// Returns from the enclosing function when `expr` (a Status) is an error.
#define RETURN_IF_ERROR(expr)                        \
  do {                                               \
    ::brigade::Status status_of_expr = (expr);       \
    if (!status_of_expr.ok()) return status_of_expr; \
  } while (false)

/// `ASSIGN_OR_RETURN(auto x, f())`: x = value of the Result, or return its Status.
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(BRIGADE_CONCAT(result_of_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                          \
  if (!result.ok()) return result.status();      \
  lhs = std::move(result).value()

}  // namespace brigade
