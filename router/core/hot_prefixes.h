// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "router/core/prefix_chain.h"

namespace brigade::router {

/// When a prefix that many want is worth computing on one more replica. Each request that goes to a
/// busier replica for the sake of a cached prefix makes a detour, of as many tokens as that one has
/// more to do than the least busy one. When the detours of one prefix add up to what it costs to
/// compute it again, the next request takes it to the least busy replica. So (as who rents skis
/// until the rent comes to their price) a prefix never costs more than twice what it would with the
/// future known. A session's prefix grows with each turn and so has another name: it stays.
class HotPrefixes final {
 public:
  /// `last`: the name of the prefix's last block.
  [[nodiscard]] std::uint64_t detours(const BlockHash& last) const;
  void add_detour(const BlockHash& last, std::uint64_t num_tokens);
  /// It was taken elsewhere.
  void forget(const BlockHash& last);

 private:
  static constexpr std::size_t kMaxPrefixes = 64;
  struct Entry {
    BlockHash last;
    std::uint64_t num_tokens = 0;
  };
  std::vector<Entry> entries_;  ///< most lately used last
};

}  // namespace brigade::router
