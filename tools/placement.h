// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace brigade::tools {

/// Where the threads of a rank run.
struct RankPlacement {
  bool pin = false;
  int first_cpu = 0;  ///< with `pin`: the rank has the CPUs from this one on, one a thread
  bool spin = false;  ///< waits may spin before they sleep
};

/// Places `num_ranks` ranks of `num_threads` threads on the CPUs that this process may use
/// (ascending). Threads are pinned and may spin only when every thread of every rank has a CPU to
/// itself, and a rank's CPUs are consecutive; else a spinning rank would take the time of the one
/// it waits for.
[[nodiscard]] std::vector<RankPlacement> place_ranks(const std::vector<int>& cpus,
                                                     std::uint32_t num_ranks,
                                                     std::uint32_t num_threads);

/// The CPUs that this process may use.
[[nodiscard]] std::vector<int> usable_cpus();

}  // namespace brigade::tools
