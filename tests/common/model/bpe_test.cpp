// SPDX-License-Identifier: Apache-2.0
#include "common/model/bpe.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "common/base/random.h"

namespace brigade::model {
namespace {

/// The definition: merge the leftmost pair of the lowest rank until there is none.
std::vector<std::int32_t> naive(std::vector<std::int32_t> ids, const std::vector<Merge>& merges) {
  while (true) {
    const Merge* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      for (const Merge& merge : merges) {
        const bool here = merge.left == ids[i] && merge.right == ids[i + 1];
        if (here && (best == nullptr || merge.rank < best->rank)) {
          best = &merge;
          at = i;
        }
      }
    }
    if (best == nullptr) return ids;
    ids[at] = best->merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

std::vector<std::int32_t> merged(const Bpe& bpe, std::vector<std::int32_t> ids) {
  bpe.merge(ids, 0);
  return ids;
}

TEST_CASE("short and long pieces are merged as the definition says, for random merges") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::uint64_t draw = 0;
    const auto random = [&](std::uint64_t below) { return random_bits(seed, ++draw) % below; };
    // Tokens 0, 1, 2 are bytes; each merge makes a new token of two earlier ones.
    std::vector<Merge> merges;
    for (std::int32_t rank = 0; rank < 20; ++rank) {
      const auto known = static_cast<std::uint64_t>(3 + rank);
      const Merge merge{.left = static_cast<std::int32_t>(random(known)),
                        .right = static_cast<std::int32_t>(random(known)),
                        .rank = rank,
                        .merged = 3 + rank};
      const bool twice = std::any_of(merges.begin(), merges.end(), [&](const Merge& other) {
        return other.left == merge.left && other.right == merge.right;
      });
      if (!twice) merges.push_back(merge);
    }
    // In the order of ranks another than that of making, a merge can be possible before a better
    // one is.
    for (Merge& merge : merges)
      merge.rank = static_cast<std::int32_t>(random(1000)) * 32 + merge.rank;
    const Bpe bpe(merges);
    for (const std::size_t length : {0U, 1U, 2U, 3U, 7U, 20U, 24U, 25U, 26U, 60U, 150U}) {
      std::vector<std::int32_t> bytes;
      for (std::size_t i = 0; i < length; ++i)
        bytes.push_back(static_cast<std::int32_t>(random(3)));
      CAPTURE(seed);
      CAPTURE(length);
      REQUIRE(merged(bpe, bytes) == naive(bytes, merges));
    }
  }
}

TEST_CASE("of merges of one rank the leftmost is done first, however long the piece") {
  const Bpe bpe({{.left = 0, .right = 1, .rank = 0, .merged = 2},
                 {.left = 1, .right = 0, .rank = 0, .merged = 3}});
  CHECK(merged(bpe, {0, 1, 0}) == std::vector<std::int32_t>{2, 0});
  CHECK(merged(bpe, {1, 0, 1}) == std::vector<std::int32_t>{3, 1});
  std::vector<std::int32_t> alternating;
  for (int i = 0; i < 101; ++i)
    alternating.push_back(i % 2);
  std::vector<std::int32_t> expected(50, 2);
  expected.push_back(0);
  CHECK(merged(bpe, alternating) == expected);
}

TEST_CASE("negative ids are joined to nothing") {
  const Bpe bpe({{.left = 0, .right = 0, .rank = 0, .merged = 1}});
  CHECK(merged(bpe, {0, -1, 0, 0, -70000}) == std::vector<std::int32_t>{0, -1, 1, -70000});
  std::vector<std::int32_t> many(50, -3);
  CHECK(merged(bpe, many) == many);
}

TEST_CASE("what was there before the piece is left alone") {
  const Bpe bpe({{.left = 0, .right = 1, .rank = 0, .merged = 2}});
  std::vector<std::int32_t> ids = {0, 1, 0, 1};
  bpe.merge(ids, 1);
  CHECK(ids == std::vector<std::int32_t>{0, 1, 2});
  ids.insert(ids.end(), 40, 1);
  bpe.merge(ids, 3);
  CHECK(ids.size() == 43);
}

TEST_CASE("of two merges of one pair the last counts") {
  const MergeTable table({{.left = 1, .right = 2, .rank = 0, .merged = 3},
                          {.left = 1, .right = 2, .rank = 1, .merged = 4}});
  REQUIRE(table.find(1, 2) != nullptr);
  CHECK(table.find(1, 2)->merged == 4);
  CHECK(table.find(2, 1) == nullptr);
}

}  // namespace
}  // namespace brigade::model
