// SPDX-License-Identifier: Apache-2.0
#include "tools/placement.h"

#include <sched.h>

namespace brigade::tools {

std::vector<RankPlacement> place_ranks(std::uint32_t num_cpus, std::uint32_t num_ranks,
                                       std::uint32_t num_threads) {
  std::vector<RankPlacement> ranks(num_ranks);
  if (std::uint64_t{num_ranks} * num_threads > num_cpus) return ranks;
  for (std::uint32_t i = 0; i < num_ranks; ++i) {
    ranks[i] = {.pin = true, .first_cpu = i * num_threads, .spin = true};
  }
  return ranks;
}

std::uint32_t num_usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(CPU_COUNT(&set));
}

}  // namespace brigade::tools
