// SPDX-License-Identifier: Apache-2.0
#include "tools/placement.h"

#include <doctest/doctest.h>

namespace brigade::tools {

TEST_CASE("ranks are pinned and may spin only when each thread has a CPU to itself") {
  struct Case {
    std::vector<int> cpus;
    std::uint32_t num_ranks;
    std::uint32_t num_threads;
    std::vector<int> first_cpus;  ///< empty: neither pinned nor spinning
  };
  for (const Case& c :
       {Case{{0, 1}, 2, 1, {0, 1}}, Case{{0, 1}, 1, 2, {0}}, Case{{0, 1}, 4, 1, {}},
        Case{{0, 1}, 2, 2, {}}, Case{{4, 5, 6, 7, 8}, 2, 2, {4, 6}},
        Case{{0, 2, 4, 6}, 4, 1, {0, 2, 4, 6}}, Case{{0, 2, 4, 6}, 2, 2, {}}, Case{{}, 1, 1, {}}}) {
    CAPTURE(c.num_ranks);
    CAPTURE(c.num_threads);
    const auto ranks = place_ranks(c.cpus, c.num_ranks, c.num_threads);
    REQUIRE(ranks.size() == c.num_ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      CHECK(ranks[i].pin == !c.first_cpus.empty());
      CHECK(ranks[i].spin == !c.first_cpus.empty());
      if (!c.first_cpus.empty()) CHECK(ranks[i].first_cpu == c.first_cpus[i]);
    }
  }
}

TEST_CASE("this process may use at least one CPU") {
  CHECK(!usable_cpus().empty());
}

}  // namespace brigade::tools
