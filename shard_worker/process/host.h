// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace brigade::worker {

/// Equal for processes that share memory and socket files: boot, mount namespace, the device behind
/// /dev/shm, and user.
[[nodiscard]] std::string host_id();

/// From the kernel's random source; never 0.
[[nodiscard]] std::uint64_t random_u64();

/// Makes the directory for this user alone (mode 0700) if it is not there; an existing one must
/// belong to this user, so that nobody else can put sockets in it.
Status make_runtime_dir(const std::string& path);

}  // namespace brigade::worker
