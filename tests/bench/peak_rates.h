// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/cpu/target.h"

namespace brigade::bench {

/// Seconds of CPU time this thread has used: unlike a wall clock it does not count what other
/// processes took.
[[nodiscard]] double thread_seconds();

/// One sample each of what one thread of this machine can do at most, in 1e9 a second.
[[nodiscard]] double sample_read(const std::byte* data, std::size_t bytes);  ///< bytes
[[nodiscard]] double sample_int8_operations(kernels::CpuTarget target);   ///< multiplies and adds
[[nodiscard]] double sample_float_operations(kernels::CpuTarget target);  ///< multiplies and adds

}  // namespace brigade::bench
