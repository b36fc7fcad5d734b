// SPDX-License-Identifier: Apache-2.0
#include "router/core/hot_prefixes.h"

#include <doctest/doctest.h>

namespace brigade::router {

TEST_CASE("detours add up by prefix, and those of the prefixes longest unused are forgotten") {
  const auto name = [](std::uint8_t number) { return BlockHash{number}; };
  HotPrefixes hot;
  CHECK_EQ(hot.detours(name(1)), 0);
  hot.add_detour(name(1), 100);
  hot.add_detour(name(2), 7);
  hot.add_detour(name(1), 50);
  CHECK_EQ(hot.detours(name(1)), 150);
  CHECK_EQ(hot.detours(name(2)), 7);
  hot.forget(name(2));
  CHECK_EQ(hot.detours(name(2)), 0);
  for (std::uint8_t i = 10; i < 10 + 63; ++i)
    hot.add_detour(name(i), 1);
  CHECK_EQ(hot.detours(name(1)), 150);
  hot.add_detour(name(1), 1);
  hot.add_detour(name(100), 1);
  CHECK_EQ(hot.detours(name(1)), 151);
  CHECK_EQ(hot.detours(name(10)), 0);
  CHECK_EQ(hot.detours(name(11)), 1);
}

}  // namespace brigade::router
