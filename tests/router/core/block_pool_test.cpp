// SPDX-License-Identifier: Apache-2.0
#include "router/core/block_pool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/random.h"

namespace brigade::router {
namespace {

using Blocks = std::vector<std::uint32_t>;

std::vector<std::int32_t> block_tokens(std::int32_t name) {
  return std::vector<std::int32_t>(wire::kBlockSize, name);
}

BlockHash name_hash(std::int32_t name) {
  BlockHash hash = {};
  hash[0] = static_cast<std::uint8_t>(name);
  hash[9] = static_cast<std::uint8_t>(name >> 4);
  return hash;
}

std::optional<std::uint32_t> find(const BlockPool& pool, std::int32_t name) {
  return pool.find(name_hash(name), block_tokens(name));
}

void fill(BlockPool& pool, std::uint32_t block, std::int32_t name) {
  REQUIRE(pool.promise(block, /*writer=*/1, name_hash(name), block_tokens(name)));
  pool.set_filled(block);
}

}  // namespace

TEST_CASE("blocks are handed out in ascending order, and none when too few are free") {
  BlockPool pool(8, true);
  Blocks blocks;
  REQUIRE(pool.allocate(5, blocks));
  CHECK(blocks == Blocks{0, 1, 2, 3, 4});
  Blocks more;
  CHECK_FALSE(pool.allocate(4, more));
  CHECK(more.empty());
  CHECK_EQ(pool.num_free(), 3);
}

TEST_CASE("a released block is free only when its last step has ended") {
  BlockPool pool(4, true);
  Blocks blocks;
  REQUIRE(pool.allocate(4, blocks));
  pool.release(blocks, /*step=*/7);
  CHECK(blocks.empty());
  CHECK_EQ(pool.num_in_flight(), 4);
  pool.step_ended(6);
  CHECK_EQ(pool.num_free(), 0);
  pool.step_ended(7);
  CHECK_EQ(pool.num_free(), 4);
  CHECK_EQ(pool.num_in_flight(), 0);
}

TEST_CASE("a shared block waits for the last step of every holder, whoever lets go first") {
  BlockPool pool(1, true);
  Blocks first;
  REQUIRE(pool.allocate(1, first));
  fill(pool, 0, 5);
  pool.share(0);
  Blocks second = {0};
  pool.release(first, /*step=*/9);
  CHECK_EQ(pool.num_owned(), 1);
  pool.release(second, /*step=*/8);
  pool.step_ended(8);
  CHECK_EQ(pool.num_in_flight(), 1);
  pool.step_ended(9);
  CHECK_EQ(pool.num_cached(), 1);
}

TEST_CASE("cached blocks are taken when none is free, the end of the oldest table first") {
  BlockPool pool(4, true);
  Blocks old;
  Blocks recent;
  REQUIRE(pool.allocate(2, old));
  REQUIRE(pool.allocate(2, recent));
  for (std::uint32_t block = 0; block < 4; ++block)
    fill(pool, block, static_cast<std::int32_t>(block));
  pool.release(old, 0);
  pool.release(recent, 0);
  CHECK_EQ(pool.num_cached(), 4);
  CHECK_EQ(pool.num_available(), 4);
  Blocks taken;
  REQUIRE(pool.allocate(3, taken));
  CHECK(taken == Blocks{1, 0, 3});
  CHECK(find(pool, 2) == 2U);
  CHECK_FALSE(find(pool, 0).has_value());
  pool.audit();
}

TEST_CASE("a block is found and shared while cached or in flight, and then not taken") {
  BlockPool pool(1, true);
  Blocks blocks;
  REQUIRE(pool.allocate(1, blocks));
  fill(pool, 0, 3);
  pool.release(blocks, /*step=*/2);
  pool.share(*find(pool, 3));
  pool.step_ended(2);
  CHECK_EQ(pool.num_owned(), 1);
  Blocks none;
  CHECK_FALSE(pool.allocate(1, none));
  Blocks again = {0};
  pool.release(again, 0);
  CHECK(pool.is_cached(0));
  pool.share(0);
  CHECK_EQ(pool.num_available(), 0);
  pool.audit();
}

TEST_CASE("an unfilled block loses its name with its last holder, a filled one without a cache") {
  for (const bool keep : {true, false}) {
    BlockPool pool(2, keep);
    Blocks blocks;
    REQUIRE(pool.allocate(2, blocks));
    REQUIRE(pool.promise(0, /*writer=*/4, name_hash(1), block_tokens(1)));
    CHECK_FALSE(pool.promise(1, /*writer=*/4, name_hash(1), block_tokens(1)));  // taken
    fill(pool, 1, 2);
    CHECK(pool.writer(0) == 4U);
    CHECK(find(pool, 1) == 0U);
    pool.release(blocks, 0);
    CHECK_FALSE(find(pool, 1).has_value());
    CHECK_EQ(find(pool, 2).has_value(), keep);
    CHECK_EQ(pool.num_free(), keep ? 1 : 2);
    pool.audit();
  }
}

TEST_CASE("under random use the pool does what a list of blocks would") {
  struct Model {
    std::uint32_t holders = 0;
    std::uint64_t busy_until = 0;
    std::optional<std::int32_t> name;
    std::uint64_t released = 0;  ///< when it became cached
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random_bits(seed, draw++) % bound; };
    const bool keep = seed % 4 != 0;
    BlockPool pool(1 + below(60), keep);
    std::vector<Model> model(pool.num_blocks());
    std::vector<Blocks> tables;
    std::set<std::uint32_t> waiting;  // without holders, but busy
    std::uint64_t step = 0;
    std::uint64_t clock = 0;
    const auto settle = [&](std::uint32_t block) { model[block].released = ++clock; };
    const auto available = [&](std::uint32_t block) {
      return model[block].holders == 0 && !waiting.contains(block);
    };
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t what = below(5);
      if (what == 0 || tables.empty()) {
        const std::uint64_t count = 1 + below(6);
        Blocks expected;
        for (const bool named : {false, true}) {
          Blocks fit;
          for (std::uint32_t b = 0; b < model.size(); ++b) {
            if (available(b) && model[b].name.has_value() == named) fit.push_back(b);
          }
          if (named) {
            std::sort(fit.begin(), fit.end(), [&](std::uint32_t a, std::uint32_t b) {
              return model[a].released < model[b].released;
            });
          }
          expected.insert(expected.end(), fit.begin(), fit.end());
        }
        Blocks blocks;
        REQUIRE_EQ(pool.allocate(count, blocks), expected.size() >= count);
        if (blocks.empty()) continue;
        expected.resize(count);
        REQUIRE(blocks == expected);
        for (const std::uint32_t block : blocks)
          model[block] = {.holders = 1, .busy_until = model[block].busy_until};
        tables.push_back(std::move(blocks));
      } else if (what == 1) {  // name one
        const Blocks& table = tables[below(tables.size())];
        const std::uint32_t block = table[below(table.size())];
        const auto name = static_cast<std::int32_t>(below(100));
        const bool taken = std::any_of(model.begin(), model.end(),
                                       [name](const Model& m) { return m.name == name; });
        const bool named = pool.promise(block, /*writer=*/1, name_hash(name), block_tokens(name));
        REQUIRE_EQ(named, !taken && !model[block].name);
        if (!named) continue;
        pool.set_filled(block);
        model[block].name = name;
      } else if (what == 2) {  // share what a name finds
        const auto name = static_cast<std::int32_t>(below(100));
        const auto found = find(pool, name);
        const auto it = std::find_if(model.begin(), model.end(),
                                     [name](const Model& m) { return m.name == name; });
        REQUIRE_EQ(found.has_value(), it != model.end());
        if (!found) continue;
        REQUIRE_EQ(*found, it - model.begin());
        pool.share(*found);
        ++it->holders;
        waiting.erase(*found);
        tables.push_back({*found});
      } else if (what == 3) {
        pool.step_ended(++step);
        // In the order in which they let go: that of their last step, then that of release.
        std::vector<std::uint32_t> ended;
        for (const std::uint32_t block : waiting) {
          if (model[block].busy_until <= step) ended.push_back(block);
        }
        std::sort(ended.begin(), ended.end(), [&](std::uint32_t a, std::uint32_t b) {
          return model[a].released < model[b].released;
        });
        for (const std::uint32_t block : ended) {
          waiting.erase(block);
          settle(block);
        }
      } else {
        const std::size_t index = below(tables.size());
        Blocks table = tables[index];
        tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(index));
        const std::uint64_t last = step + below(2);
        for (auto it = table.rbegin(); it != table.rend(); ++it) {
          Model& block = model[*it];
          block.busy_until = std::max(block.busy_until, last);
          if (--block.holders > 0) continue;
          if (!keep) block.name.reset();
          settle(*it);
          if (block.busy_until > step) waiting.insert(*it);
        }
        pool.release(table, last);
      }
      pool.audit();
      std::uint64_t owned = 0;
      for (std::uint32_t block = 0; block < model.size(); ++block) {
        REQUIRE_EQ(pool.num_holders(block), model[block].holders);
        owned += model[block].holders > 0 ? 1 : 0;
      }
      REQUIRE_EQ(owned, pool.num_owned());
      REQUIRE_EQ(pool.num_in_flight(), waiting.size());
    }
  }
}

}  // namespace brigade::router
