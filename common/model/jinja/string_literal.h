// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace brigade::model::jinja {

/// The escapes of a Python string literal resolved (\n, \x41, \u00e9, \U0001f600, \101, ...);
/// unknown ones stay. A surrogate pair becomes its character, a lone surrogate U+FFFD. Nothing for
/// a broken escape or a \N{name}.
[[nodiscard]] std::optional<std::string> unescape(std::string_view literal);

}  // namespace brigade::model::jinja
