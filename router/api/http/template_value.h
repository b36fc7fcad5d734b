// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/model/jinja/value.h"
#include "router/api/http/json.h"

namespace brigade::router {

/// JSON as a value of the template language. Its strings are a client's: special tokens in them are
/// only text.
[[nodiscard]] model::jinja::Value to_template_value(const JsonValue& json);

}  // namespace brigade::router
