// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace brigade::worker {

/// Equal for processes that share memory and socket files: boot, mount namespace, the device behind
/// /dev/shm, and user.
[[nodiscard]] std::string host_id();

/// From the kernel's random source; never 0.
[[nodiscard]] std::uint64_t random_u64();

}  // namespace brigade::worker
