// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace brigade::tools {

/// Where the threads of a rank run.
struct RankPlacement {
  bool pin = false;
  /// With `pin`: the rank's first among the CPUs that may be used, one a thread.
  std::uint32_t first_cpu = 0;
  bool spin = false;  ///< waits may spin before they sleep
};

/// Places `num_ranks` ranks of `num_threads` threads on `num_cpus` CPUs. Threads are pinned and may
/// spin only when every thread of every rank has a CPU to itself: else a spinning rank would take
/// the time of the one it waits for.
[[nodiscard]] std::vector<RankPlacement> place_ranks(std::uint32_t num_cpus,
                                                     std::uint32_t num_ranks,
                                                     std::uint32_t num_threads);

/// How many CPUs this process may use.
[[nodiscard]] std::uint32_t num_usable_cpus();

}  // namespace brigade::tools
