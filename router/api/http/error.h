// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/wire/drop_reason.h"
#include "router/api/http/http.h"

namespace brigade::router {

/// An answer that is an error, in OpenAI's terms. `type` follows from the status.
struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  ///< the request's field; empty: null
  std::string code;   ///< empty: null
  std::uint32_t retry_after_s = 0;
  wire::DropReason reason = wire::DropReason::kNone;
};

/// The request's own fault, in one of its fields.
[[nodiscard]] ApiError bad_field(std::string_view field, std::string message);
/// There is nothing at the path.
[[nodiscard]] ApiError no_route(std::string_view path);
[[nodiscard]] ApiError model_not_found(std::string_view name);
/// What the router answered. `retry_after_s` counts only where a retry can help.
[[nodiscard]] ApiError from_status(const Status& status, std::uint32_t retry_after_s = 0,
                                   wire::DropReason reason = wire::DropReason::kNone);
[[nodiscard]] ApiError overloaded(std::string message);

/// {"error":{"message","type","param","code"}}, and "reason" where a request was given up for want
/// of room or time; a reply says it in the header X-Request-Dropped-Reason too.
[[nodiscard]] std::string to_json(const ApiError& error);
[[nodiscard]] HttpReply to_reply(const ApiError& error);

}  // namespace brigade::router
