// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/status.h"

namespace brigade::wire {

/// Why a request was given up for want of room or time, and whether compute was spent on it: a
/// `rejected-` one took none and may be sent anywhere else as if new; an `evicted-` one had been
/// placed on a replica. The words are those of llm-d's dropped-reason header. The numbers travel on
/// the wire: append only.
enum class DropReason : std::uint8_t {
  kNone = 0,                ///< not given up, or for another cause (see the status)
  kSaturated = 1,           ///< a bound of the queue was reached, or the wait would be too long
  kExpired = 2,             ///< its deadline passed while it waited
  kUnavailable = 3,         ///< there is no replica for it, or the router ends
  kEvictedExpired = 4,      ///< its deadline passed while it ran
  kEvictedUnavailable = 5,  ///< its replica was lost and there is no other
};

[[nodiscard]] constexpr bool compute_spent(DropReason reason) {
  return reason >= DropReason::kEvictedExpired;
}

/// Empty for kNone.
[[nodiscard]] constexpr std::string_view to_string(DropReason reason) {
  switch (reason) {
    case DropReason::kNone:
      return "";
    case DropReason::kSaturated:
      return "rejected-saturated";
    case DropReason::kExpired:
      return "rejected-ttl-expired";
    case DropReason::kUnavailable:
      return "rejected-unavailable";
    case DropReason::kEvictedExpired:
      return "evicted-ttl-expired";
    case DropReason::kEvictedUnavailable:
      return "evicted-unavailable";
  }
  return "";
}

/// The reason that goes with an error; `computed`: the request had been placed on a replica.
[[nodiscard]] constexpr DropReason drop_reason_of(StatusCode code, bool computed) {
  switch (code) {
    case StatusCode::kResourceExhausted:
      return DropReason::kSaturated;
    case StatusCode::kDeadlineExceeded:
      return computed ? DropReason::kEvictedExpired : DropReason::kExpired;
    case StatusCode::kUnavailable:
      return computed ? DropReason::kEvictedUnavailable : DropReason::kUnavailable;
    default:
      return DropReason::kNone;
  }
}

}  // namespace brigade::wire
