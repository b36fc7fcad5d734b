// SPDX-License-Identifier: Apache-2.0
#include "router/core/prefix_cache.h"

#include <doctest/doctest.h>

#include <map>
#include <numeric>

#include "common/base/random.h"

namespace brigade::router {
namespace {

std::vector<std::int32_t> ramp(std::size_t count, std::int32_t first) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// Few values in the bytes that choose the slot, so that probes run long.
BlockHash crowded_hash(std::uint64_t name) {
  BlockHash hash = {};
  hash[0] = static_cast<std::uint8_t>(name % 7);
  hash[8] = static_cast<std::uint8_t>(name % 3);
  for (std::size_t i = 0; i < 8; ++i)
    hash[16 + i] = static_cast<std::uint8_t>(name >> (8 * i));
  return hash;
}

}  // namespace

TEST_CASE("equal hashes with other tokens are no hit") {
  PrefixCache cache;
  cache.insert(3, crowded_hash(1), ramp(16, 0));
  CHECK(cache.find(crowded_hash(1), ramp(16, 0)) == 3U);
  CHECK_FALSE(cache.find(crowded_hash(1), ramp(16, 1)).has_value());
}

TEST_CASE("under random use the table finds what a map does, however crowded") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random_bits(seed, draw++) % bound; };
    PrefixCache cache;
    std::map<std::uint64_t, std::uint32_t> model;  // name -> block
    const std::uint64_t num_names = 10 + below(300);
    for (int i = 0; i < 1500; ++i) {
      const std::uint64_t name = below(num_names);
      const auto tokens = ramp(16, static_cast<std::int32_t>(name));
      const auto it = model.find(name);
      const auto found = cache.find(crowded_hash(name), tokens);
      REQUIRE_EQ(found.has_value(), it != model.end());
      if (it != model.end()) {
        REQUIRE_EQ(*found, it->second);
        if (below(2) == 0) continue;
        cache.erase(it->second);
        model.erase(it);
      } else {
        const auto block = static_cast<std::uint32_t>(below(1000));
        if (cache.contains(block)) continue;
        cache.insert(block, crowded_hash(name), tokens);
        model[name] = block;
      }
      REQUIRE_EQ(cache.size(), model.size());
    }
  }
}

}  // namespace brigade::router
