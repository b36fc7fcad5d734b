// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/error.h"

#include <algorithm>

#include "common/base/strings.h"
#include "router/api/http/json_write.h"

namespace brigade::router {
namespace {

// openai 1.x takes its own back-off when told more than 60 s, 2.x gives up above 120.
constexpr std::uint32_t kMaxRetryAfter = 60;

int http_status(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
    case StatusCode::kInternal:
    case StatusCode::kDataLoss:
      return 500;
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kDeadlineExceeded:
      return 504;
    case StatusCode::kCancelled:
    case StatusCode::kUnavailable:
      return 503;
    case StatusCode::kFailedPrecondition:
      return 409;
    case StatusCode::kPermissionDenied:
      return 403;
  }
  return 500;
}

std::string_view error_type(int status) {
  switch (status) {
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "service_unavailable_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

void append_nullable(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    append_json_string(out, text);
  }
}

}  // namespace

ApiError bad_field(std::string_view field, std::string message) {
  return {.status = 400,
          .message = std::move(message),
          .param = std::string(field),
          .code = "invalid_value"};
}

ApiError no_route(std::string_view path) {
  return {.status = 404, .message = str_cat("There is nothing at ", quoted(path), ".")};
}

ApiError model_not_found(std::string_view name) {
  return {.status = 404,
          .message = str_cat("The model ", quoted(name), " does not exist."),
          .param = "model",
          .code = "model_not_found"};
}

namespace {

/// The router's messages about a request begin with its field, as `field: ` or `field[i]: `.
std::string field_of(std::string_view message) {
  const std::size_t end = message.find(": ");
  if (end == std::string_view::npos) return {};
  const std::string_view name = message.substr(0, end);
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_[]";
  return name.find_first_not_of(kAllowed) == std::string_view::npos ? std::string(name)
                                                                    : std::string();
}

}  // namespace

ApiError from_status(const Status& status, std::uint32_t retry_after_s, wire::DropReason reason) {
  ApiError error{
      .status = http_status(status.code()), .message = status.message(), .reason = reason};
  switch (error.status) {
    case 400:
      error.param = field_of(error.message);
      if (error.message.find("context length") != std::string::npos) {
        error.code = "context_length_exceeded";
      }
      break;
    case 429:
      error.code = "rate_limit_exceeded";
      [[fallthrough]];
    case 503:
      error.retry_after_s = std::max(retry_after_s, 1U);
      break;
    default:
      break;
  }
  return error;
}

ApiError overloaded(std::string message) {
  return {.status = 503,
          .message = std::move(message),
          .retry_after_s = 1,
          .reason = wire::DropReason::kSaturated};
}

std::string to_json(const ApiError& error) {
  std::string out = "{\"error\":{\"message\":";
  append_json_string(out, error.message);
  out += ",\"type\":";
  append_json_string(out, error_type(error.status));
  out += ",\"param\":";
  append_nullable(out, error.param);
  out += ",\"code\":";
  append_nullable(out, error.code);
  if (error.reason != wire::DropReason::kNone) {
    out += ",\"reason\":";
    append_json_string(out, to_string(error.reason));
  }
  out += "}}";
  return out;
}

HttpReply to_reply(const ApiError& error) {
  HttpReply reply{.status = error.status, .body = to_json(error)};
  if (error.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.retry_after_s > 0) {
    reply.headers.emplace_back("Retry-After",
                               std::to_string(std::min(error.retry_after_s, kMaxRetryAfter)));
  }
  // Clients try errors from 500 on again; this one has used up the time that it was given.
  if (error.status == 504) reply.headers.emplace_back("X-Should-Retry", "false");
  if (error.reason != wire::DropReason::kNone) {
    reply.headers.emplace_back("X-Request-Dropped-Reason", to_string(error.reason));
  }
  return reply;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

}  // namespace brigade::router
