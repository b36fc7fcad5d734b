// SPDX-License-Identifier: Apache-2.0
#include "router/core/block_pool.h"

#include <doctest/doctest.h>

#include <map>

#include "common/base/random.h"

namespace brigade::router {

TEST_CASE("blocks are handed out in ascending order, and none when too few are free") {
  BlockPool pool(8);
  std::vector<std::uint32_t> blocks;
  REQUIRE(pool.allocate(1, 5, blocks));
  CHECK(blocks == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  std::vector<std::uint32_t> more;
  CHECK_FALSE(pool.allocate(2, 4, more));
  CHECK(more.empty());
  CHECK_EQ(pool.num_free(), 3);
}

TEST_CASE("a retired block is free only when its step has ended") {
  BlockPool pool(4);
  std::vector<std::uint32_t> blocks;
  REQUIRE(pool.allocate(1, 4, blocks));
  pool.retire(1, blocks, /*step=*/7);
  CHECK(blocks.empty());
  CHECK_EQ(pool.num_in_flight(), 4);
  pool.step_ended(6);
  CHECK_EQ(pool.num_free(), 0);
  pool.step_ended(7);
  CHECK_EQ(pool.num_free(), 4);
  CHECK_EQ(pool.num_in_flight(), 0);
}

TEST_CASE("blocks are conserved and have one owner under random use") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random_bits(seed, draw++) % bound; };
    BlockPool pool(1 + below(200));
    std::map<RequestId, std::vector<std::uint32_t>> owned;
    RequestId next = 1;
    std::uint64_t step = 0;
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t what = below(4);
      if (what == 0 || owned.empty()) {
        const RequestId id = owned.empty() || below(2) == 0 ? next++ : owned.begin()->first;
        const std::uint64_t count = 1 + below(12);
        const bool enough = pool.num_free() >= count;
        std::vector<std::uint32_t> blocks;
        REQUIRE_EQ(pool.allocate(id, count, blocks), enough);
        for (const std::uint32_t block : blocks)
          owned[id].push_back(block);
      } else if (what == 3) {
        pool.step_ended(++step);
      } else {
        const auto it = std::next(owned.begin(), static_cast<std::ptrdiff_t>(below(owned.size())));
        if (what == 1) pool.free(it->first, it->second);
        if (what == 2) pool.retire(it->first, it->second, step + 1 + below(3));
        owned.erase(it);
      }
      pool.audit();
      std::uint64_t count = 0;
      for (const auto& [id, blocks] : owned) {
        count += blocks.size();
        for (const std::uint32_t block : blocks)
          REQUIRE(pool.is_owned_by(block, id));
      }
      REQUIRE_EQ(count, pool.num_owned());
    }
    for (auto& [id, blocks] : owned)
      pool.free(id, blocks);
    pool.step_ended(step + 10);
    CHECK_EQ(pool.num_free(), pool.num_blocks());
  }
}

}  // namespace brigade::router
