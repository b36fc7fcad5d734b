// SPDX-License-Identifier: Apache-2.0
#include "tools/placement.h"

#include <sched.h>

#include <cstddef>

namespace brigade::tools {

std::vector<RankPlacement> place_ranks(const std::vector<int>& cpus, std::uint32_t num_ranks,
                                       std::uint32_t num_threads) {
  std::vector<RankPlacement> ranks(num_ranks);
  std::size_t next = 0;
  for (RankPlacement& rank : ranks) {
    const std::size_t last = next + num_threads - 1;
    // cpus ascend: the distance of the ends tells whether there is a gap between them.
    if (last >= cpus.size() || cpus[next] + static_cast<int>(num_threads) - 1 != cpus[last]) {
      return std::vector<RankPlacement>(num_ranks);
    }
    rank = {.pin = true, .first_cpu = cpus[next], .spin = true};
    next = last + 1;
  }
  return ranks;
}

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace brigade::tools
