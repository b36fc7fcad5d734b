// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "router/api/http/http.h"
#include "router/api/http/request_parser.h"

namespace brigade::router {

/// Header lines that let a web page of the request's Origin read the answer; empty when the request
/// has none, or one that is not in `origins` (`https://chat.example.com`; `*` is any).
[[nodiscard]] std::string cors_headers(const RequestHead& head,
                                       const std::vector<std::string>& origins);

/// The answer to a browser that asks whether a page may send what it wants to (OPTIONS); none when
/// this is no such question or its origin is not allowed.
[[nodiscard]] std::optional<HttpReply> answer_preflight(const RequestHead& head,
                                                        const std::vector<std::string>& origins);

}  // namespace brigade::router
