// SPDX-License-Identifier: Apache-2.0
#include "common/base/partition.h"

#include <doctest/doctest.h>

namespace brigade {

TEST_CASE("an even split of what does not divide gives the larger shares to the lower ranks") {
  CHECK_MESSAGE((split_evenly(3, 2) == Partition{{0, 2}, {2, 3}}), "3 KV heads over 2 ranks");
  CHECK_MESSAGE((split_evenly(9, 4) == Partition{{0, 3}, {3, 5}, {5, 7}, {7, 9}}), "9 over 4");
}

TEST_CASE("a partition covers everything once, in order, for any size, unit and number of ranks") {
  for (std::int64_t size : {0, 1, 5, 16, 31, 576, 1536, 49152}) {
    for (std::int64_t unit : {1, 16, 32}) {
      for (std::int64_t ranks = 1; ranks <= 9; ++ranks) {
        std::int64_t at = 0;
        for (const Range& range : split_evenly(size, ranks, unit)) {
          REQUIRE(range.begin == at);
          REQUIRE(range.end >= range.begin);
          REQUIRE((range.end == size || range.end % unit == 0));
          at = range.end;
        }
        REQUIRE(at == size);
      }
    }
  }
}

TEST_CASE("shares follow the weights and no rank starves while there are units") {
  CHECK((split_by_weight(100, {3, 1}) == Partition{{0, 75}, {75, 100}}));
  CHECK((split_by_weight(3, {1000, 1, 1}) == Partition{{0, 1}, {1, 2}, {2, 3}}));
}

}  // namespace brigade
