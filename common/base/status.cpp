// SPDX-License-Identifier: Apache-2.0
#include "common/base/status.h"

namespace brigade {

std::string_view to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kDeadlineExceeded:
      return "deadline exceeded";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kFailedPrecondition:
      return "failed precondition";
    case StatusCode::kDataLoss:
      return "data loss";
    case StatusCode::kPermissionDenied:
      return "permission denied";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status Status::with_context(std::string_view prefix) const {
  if (ok()) return *this;
  return {code_, std::string(prefix) + ": " + message_};
}

}  // namespace brigade
