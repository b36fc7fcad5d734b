// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "common/model/jinja/builtins.h"

namespace brigade::model::jinja {

/// The parts of find_filter's table.
[[nodiscard]] Function find_text_filter(std::string_view name);
[[nodiscard]] Function find_layout_filter(std::string_view name);
[[nodiscard]] Function find_sequence_filter(std::string_view name);

}  // namespace brigade::model::jinja
