// SPDX-License-Identifier: Apache-2.0
#include "router/core/prefix_chain.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace brigade::router {
namespace {

std::vector<std::int32_t> ramp(std::size_t count, std::int32_t first) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

}  // namespace

TEST_CASE("a chain names whole blocks by their tokens and all before them, in any pieces") {
  const std::vector<std::int32_t> tokens = ramp(70, 3);
  PrefixChain whole(PrefixScope{.model_digest = "m", .salt = "t"});
  whole.extend(tokens);
  REQUIRE_EQ(whole.hashes().size(), 4);
  PrefixChain pieces(PrefixScope{.model_digest = "m", .salt = "t"});
  for (std::size_t count = 1; count <= tokens.size(); ++count)
    pieces.extend(std::span(tokens).first(count));
  CHECK(std::equal(whole.hashes().begin(), whole.hashes().end(), pieces.hashes().begin(),
                   pieces.hashes().end()));

  std::vector<std::int32_t> other = tokens;
  other[20] += 1;
  PrefixChain changed(PrefixScope{.model_digest = "m", .salt = "t"});
  changed.extend(other);
  CHECK(changed.hashes()[0] == whole.hashes()[0]);
  CHECK(changed.hashes()[1] != whole.hashes()[1]);
  CHECK(changed.hashes()[2] != whole.hashes()[2]);
}

TEST_CASE("another model, tenant or group has other names") {
  const std::vector<std::int32_t> tokens = ramp(16, 0);
  std::vector<PrefixChain> chains;
  chains.emplace_back(PrefixScope{.model_digest = "m", .salt = "t"});
  chains.emplace_back(PrefixScope{.model_digest = "m", .salt = "u"});
  chains.emplace_back(PrefixScope{.model_digest = "mt", .salt = ""});
  chains.emplace_back(PrefixScope{.model_digest = "", .salt = "mt"});
  chains.emplace_back(std::uint64_t{1});
  chains.emplace_back(std::uint64_t{2});
  for (PrefixChain& chain : chains)
    chain.extend(tokens);
  for (std::size_t i = 0; i < chains.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      CHECK(chains[i].hashes()[0] != chains[j].hashes()[0]);
  }
  PrefixChain none;
  none.extend(tokens);
  CHECK(none.hashes().empty());
}

}  // namespace brigade::router
