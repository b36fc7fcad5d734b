// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/model/jinja/budget.h"
#include "common/model/jinja/callable.h"
#include "common/model/jinja/value.h"

namespace brigade::model::jinja {

/// Widths and precisions are bounded.
inline constexpr std::int64_t kMaxWidth = 10'000;

/// Python's `format % values`: one value, a tuple of them, or a dict for %(name)s.
[[nodiscard]] Text percent_format(Budget& budget, const Text& format, const Value& values);

/// Python's `format.format(...)`: fields by position and name, with conversions and formats, but
/// neither attributes nor items of them.
[[nodiscard]] Text brace_format(Budget& budget, const Text& format, const Args& args);

}  // namespace brigade::model::jinja
