// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace brigade::tools {

/// `200ms`, `1.5s`, `2m`, `1h`, or a plain number of seconds, in seconds; above 0, at most a week.
[[nodiscard]] Result<double> parse_seconds(std::string_view text);

/// Three digits with a unit that fits: `850 us`, `12.3 ms`, `4.56 s`.
[[nodiscard]] std::string format_seconds(double seconds);

/// `1234567` as `1.23 M`; small numbers as they are.
[[nodiscard]] std::string format_count(double count);

}  // namespace brigade::tools
