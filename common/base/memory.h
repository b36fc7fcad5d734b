// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace brigade {

/// Bytes that this process could still take without swapping: what the kernel says is available,
/// and what is left of the limit of its control group (a container's), whichever is less.
[[nodiscard]] std::uint64_t available_memory();

/// For people: "98.4 MB".
[[nodiscard]] std::string memory_text(std::uint64_t bytes);

}  // namespace brigade
