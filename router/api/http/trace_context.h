// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "router/api/http/request_parser.h"

namespace brigade::router {

/// The W3C `traceparent` of a request (00-TRACE_ID-PARENT_ID-FLAGS in lower-case hex); empty when
/// there is none or it is not well formed.
[[nodiscard]] std::string traceparent_of(const RequestHead& head);

/// Its 32 digits; empty for an empty one.
[[nodiscard]] std::string_view trace_id_of(std::string_view traceparent);

}  // namespace brigade::router
