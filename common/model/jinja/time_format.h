// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace brigade::model::jinja {

/// strftime in English, of a time in seconds since 1970 (any sign, proleptic Gregorian calendar),
/// reading no clock, zone or locale. Knows %a %A %b %B %d %e %H %I %j %m %M %p %S %y %Y %%, with
/// `-` for no padding; others stay as they are.
[[nodiscard]] std::string format_time(std::int64_t seconds, std::string_view format);

}  // namespace brigade::model::jinja
