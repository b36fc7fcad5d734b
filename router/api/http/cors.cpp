// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/cors.h"

#include <algorithm>
#include <string_view>

namespace brigade::router {
namespace {

constexpr std::string_view kMaxAge = "600";
constexpr std::size_t kMaxAskedHeaders = 1024;

bool is_allowed(const std::string* origin, const std::vector<std::string>& origins) {
  if (origin == nullptr || origin->empty()) return false;
  return std::ranges::any_of(
      origins, [&](const std::string& allowed) { return allowed == "*" || allowed == *origin; });
}

/// Field names and commas, and nothing that could end the line it is repeated in.
bool is_list_of_names(std::string_view text) {
  return text.size() <= kMaxAskedHeaders && std::ranges::all_of(text, [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == ',' || c == ' ';
         });
}

}  // namespace

std::string cors_headers(const RequestHead& head, const std::vector<std::string>& origins) {
  const std::string* origin = head.find("origin");
  if (!is_allowed(origin, origins)) return "";
  return "Access-Control-Allow-Origin: " + *origin +
         "\r\nVary: Origin\r\nAccess-Control-Expose-Headers: X-Request-Id, Retry-After\r\n";
}

std::optional<HttpReply> answer_preflight(const RequestHead& head,
                                          const std::vector<std::string>& origins) {
  if (head.method != "OPTIONS" || head.find("access-control-request-method") == nullptr ||
      !is_allowed(head.find("origin"), origins)) {
    return std::nullopt;
  }
  HttpReply reply{.content_type = "text/plain"};
  reply.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
  reply.headers.emplace_back("Access-Control-Max-Age", kMaxAge);
  // Clients of this API send headers of their own (x-stainless-...): a browser lists them.
  const std::string* asked = head.find("access-control-request-headers");
  reply.headers.emplace_back("Access-Control-Allow-Headers",
                             asked != nullptr && is_list_of_names(*asked)
                                 ? *asked
                                 : "Authorization, Content-Type, X-Request-Id");
  return reply;
}

}  // namespace brigade::router
