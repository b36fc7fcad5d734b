// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace brigade::model {

/// SHA-256 of the two parts one after the other, as 64 lower-case hex digits.
[[nodiscard]] std::string sha256_hex(std::span<const std::byte> first,
                                     std::span<const std::byte> second);

}  // namespace brigade::model
