// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/wire/messages.h"
#include "router/core/prefix_chain.h"

namespace brigade::router {

/// Which KV block of a replica has which name (its hash in a PrefixChain). A hash table with open
/// addressing, linear probing and deletion by moving back; it grows with the highest block that it
/// was given, and takes no memory otherwise. Never iterated: the order of its slots decides
/// nothing.
class PrefixCache final {
 public:
  PrefixCache() : table_(kMinSlots) {}

  /// The block with this name whose 16 tokens are these too: a collision of hashes gives no one
  /// another's KV.
  [[nodiscard]] std::optional<std::uint32_t> find(const BlockHash& hash,
                                                  std::span<const std::int32_t> tokens) const;
  /// `block` must have no name, and no other block this one.
  void insert(std::uint32_t block, const BlockHash& hash, std::span<const std::int32_t> tokens);
  void erase(std::uint32_t block);  ///< must have a name
  [[nodiscard]] bool contains(std::uint32_t block) const {
    return block < entries_.size() && entries_[block].present;
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  static constexpr std::size_t kMinSlots = 64;
  struct Entry {
    BlockHash hash;
    std::array<std::int32_t, wire::kBlockSize> tokens;
    bool present = false;
  };
  struct Slot {
    std::uint32_t tag = 0;    ///< of the hash: most wrong slots are passed without its entry
    std::uint32_t block = 0;  ///< + 1; 0: empty
  };
  [[nodiscard]] std::size_t home(const BlockHash& hash) const;
  void put(const BlockHash& hash, std::uint32_t block);
  void grow();

  std::vector<Entry> entries_;  ///< [highest block given + 1]
  std::vector<Slot> table_;     ///< a power of two, at most half full
  std::uint64_t size_ = 0;
};

}  // namespace brigade::router
