// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "common/model/jinja/ast.h"

namespace brigade::model::jinja {

/// The syntax tree of a template. Throws Error: kInvalidArgument naming line and what was expected,
/// or kResourceExhausted for a tree too deep.
[[nodiscard]] Block parse_template(std::string_view source);

}  // namespace brigade::model::jinja
