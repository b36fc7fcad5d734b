// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace brigade::wire {

/// Hex hash of schemas/: router and workers must have the same.
[[nodiscard]] std::string_view schema_hash();

/// Version, and commit where it is known, such as `0.1.0 (a1b2c3d)`: for people and logs.
[[nodiscard]] std::string_view build_id();

}  // namespace brigade::wire
