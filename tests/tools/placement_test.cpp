// SPDX-License-Identifier: Apache-2.0
#include "tools/placement.h"

#include <doctest/doctest.h>

namespace brigade::tools {

TEST_CASE("ranks are pinned side by side and may spin only when each thread has a CPU to itself") {
  struct Case {
    std::uint32_t num_cpus;
    std::uint32_t num_ranks;
    std::uint32_t num_threads;
    bool pinned;
  };
  for (const Case& c :
       {Case{2, 2, 1, true}, Case{2, 1, 2, true}, Case{8, 2, 3, true}, Case{2, 4, 1, false},
        Case{2, 2, 2, false}, Case{1, 1, 2, false}, Case{0, 1, 1, false}}) {
    CAPTURE(c.num_cpus);
    CAPTURE(c.num_ranks);
    CAPTURE(c.num_threads);
    const auto ranks = place_ranks(c.num_cpus, c.num_ranks, c.num_threads);
    REQUIRE(ranks.size() == c.num_ranks);
    for (std::uint32_t i = 0; i < c.num_ranks; ++i) {
      CHECK(ranks[i].pin == c.pinned);
      CHECK(ranks[i].spin == c.pinned);
      if (c.pinned) CHECK(ranks[i].first_cpu == i * c.num_threads);
    }
  }
}

TEST_CASE("this process may use at least one CPU") {
  CHECK(num_usable_cpus() >= 1);
}

}  // namespace brigade::tools
