// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/head.h"

#include <algorithm>
#include <cctype>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return c < 0x80 ? static_cast<char>(std::tolower(c)) : static_cast<char>(c);
  });
  return out;
}

bool ends_with_number(std::string_view host) {
  return !host.empty() && host.back() >= '0' && host.back() <= '9';
}

/// `host[:port]` without the port. No name ends in a digit (top-level domains are letters): such a
/// host is an address.
std::string_view host_name(std::string_view host) {
  if (!host.empty() && host.front() == '[') return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_local_host(std::string_view name, const HeadRules& rules) {
  const std::string host = lower(name);
  if (host == "localhost" || host.ends_with(".localhost") || host.starts_with('[')) return true;
  if (ends_with_number(host)) return true;
  return std::find(rules.allowed_hosts.begin(), rules.allowed_hosts.end(), host) !=
         rules.allowed_hosts.end();
}

std::optional<ApiError> check_host(const RequestHead& head, const HeadRules& rules) {
  const std::size_t hosts = head.count("host");
  if (hosts == 0 && !head.http_1_1) return std::nullopt;
  if (hosts != 1) {
    return ApiError{.status = 400, .message = str_cat(hosts, " Host fields where one belongs.")};
  }
  const std::string& host = *head.find("host");
  const bool clean = std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' ||
           c == ']';
  });
  if (!clean) return ApiError{.status = 400, .message = str_cat("Bad Host: ", quoted(host), ".")};
  if (rules.loopback_only && !is_local_host(host_name(host), rules)) {
    return ApiError{.status = 403,
                    .message = str_cat("This server answers to localhost and addresses, not to ",
                                       quoted(host), ".")};
  }
  return std::nullopt;
}

std::optional<ApiError> check_framing(const RequestHead& head) {
  if (head.count("content-length") > 1) {
    return ApiError{.status = 400, .message = "Content-Length is there more than once."};
  }
  if (const std::string* length = head.find("content-length");
      length != nullptr && length->find_first_not_of("0123456789") != std::string::npos) {
    return ApiError{.status = 400, .message = str_cat("Bad Content-Length: ", quoted(*length))};
  }
  if (head.count("transfer-encoding") == 0) return std::nullopt;
  const std::string* encoding = head.find("transfer-encoding");
  if (!head.http_1_1 || encoding == nullptr || lower(*encoding) != "chunked") {
    return ApiError{.status = 400, .message = "The only Transfer-Encoding is chunked."};
  }
  return std::nullopt;
}

std::optional<ApiError> check_body_type(const RequestHead& head) {
  if (const std::string* encoding = head.find("content-encoding");
      head.count("content-encoding") > 0 &&
      (encoding == nullptr || lower(*encoding) != "identity")) {
    return ApiError{.status = 415, .message = "Compressed bodies are not supported."};
  }
  if (head.method != "POST") return std::nullopt;
  const std::string* sent = head.find("content-type");
  const std::string type =
      sent == nullptr ? std::string() : lower(sent->substr(0, sent->find_first_of("; ")));
  if (type == "application/json") return std::nullopt;
  // Anything else may be a form or text that a web page posts without asking.
  return ApiError{
      .status = 415,
      .message = str_cat("Content-Type must be application/json, not ", quoted(type), ".")};
}

}  // namespace

std::optional<ApiError> check_head(const RequestHead& head, const HeadRules& rules) {
  if (head.fields.size() > rules.max_fields) {
    return ApiError{.status = 431,
                    .message = str_cat("More than ", rules.max_fields, " header fields.")};
  }
  if (auto error = check_framing(head)) return error;
  if (auto error = check_host(head, rules)) return error;
  if (!head.target.starts_with('/') && head.target != "*") {
    return ApiError{.status = 400, .message = "The request target must be a path."};
  }
  if (const std::string* expect = head.find("expect");
      head.count("expect") > 0 && (expect == nullptr || lower(*expect) != "100-continue")) {
    return ApiError{.status = 417, .message = "The only Expect is 100-continue."};
  }
  return check_body_type(head);
}

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

std::optional<std::string> request_id_of(const RequestHead& head) {
  const std::string* id = head.find("x-request-id");
  if (id == nullptr || id->empty() || id->size() > 128) return std::nullopt;
  const bool printable =
      std::all_of(id->begin(), id->end(), [](char c) { return c > 0x20 && c < 0x7F; });
  return printable ? std::optional(*id) : std::nullopt;
}

}  // namespace brigade::router
