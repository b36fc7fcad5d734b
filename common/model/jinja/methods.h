// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "common/model/jinja/callable.h"

namespace brigade::model::jinja {

/// The part of find_method's table for strings that methods_layout.cpp has.
[[nodiscard]] Function find_layout_method(std::string_view name);

}  // namespace brigade::model::jinja
