// SPDX-License-Identifier: Apache-2.0
#include "router/core/id_set.h"

#include <doctest/doctest.h>

#include <set>

#include "common/base/random.h"

namespace brigade::router {

TEST_CASE("an id set gives its lowest member whatever its size") {
  for (const std::size_t size : {1UL, 63UL, 64UL, 65UL, 4096UL, 5000UL}) {
    IdSet ids(size);
    CHECK_FALSE(ids.lowest().has_value());
    std::set<std::size_t> model;
    for (std::uint64_t i = 0; i < 4000; ++i) {
      const std::size_t id = random_bits(size, i) % size;
      if (model.insert(id).second) {
        ids.insert(id);
      } else {
        model.erase(id);
        ids.erase(id);
      }
      REQUIRE_EQ(ids.count(), model.size());
      REQUIRE_EQ(ids.contains(id), model.contains(id));
      REQUIRE_EQ(ids.lowest().has_value(), !model.empty());
      if (!model.empty()) REQUIRE_EQ(*ids.lowest(), *model.begin());
    }
  }
}

TEST_CASE("a full id set has every id") {
  IdSet ids(130, /*full=*/true);
  CHECK_EQ(ids.count(), 130);
  ids.erase(0);
  CHECK_EQ(*ids.lowest(), 1);
}

}  // namespace brigade::router
