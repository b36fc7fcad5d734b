// SPDX-License-Identifier: Apache-2.0
#include "router/core/prefix_cache.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace brigade::router {
namespace {

// The hash is uniform: any of its bytes will do.
std::uint64_t word(const BlockHash& hash) {
  std::uint64_t value = 0;
  std::memcpy(&value, hash.data(), sizeof(value));
  return value;
}

std::uint32_t tag_of(const BlockHash& hash) {
  std::uint32_t value = 0;
  std::memcpy(&value, hash.data() + sizeof(std::uint64_t), sizeof(value));
  return value;
}

}  // namespace

std::size_t PrefixCache::home(const BlockHash& hash) const {
  return static_cast<std::size_t>(word(hash)) & (table_.size() - 1);
}

std::optional<std::uint32_t> PrefixCache::find(const BlockHash& hash,
                                               std::span<const std::int32_t> tokens) const {
  const std::size_t mask = table_.size() - 1;
  const std::uint32_t tag = tag_of(hash);
  for (std::size_t i = home(hash); table_[i].block != 0; i = (i + 1) & mask) {
    if (table_[i].tag != tag) continue;
    const Entry& entry = entries_[table_[i].block - 1];
    if (entry.hash != hash) continue;
    if (!std::equal(entry.tokens.begin(), entry.tokens.end(), tokens.begin(), tokens.end())) {
      return std::nullopt;
    }
    return table_[i].block - 1;
  }
  return std::nullopt;
}

void PrefixCache::insert(std::uint32_t block, const BlockHash& hash,
                         std::span<const std::int32_t> tokens) {
  INVARIANT(!contains(block)) << "block " << block << " has a name";
  INVARIANT_EQ(tokens.size(), wire::kBlockSize);
  if (block >= entries_.size()) entries_.resize(block + 1);
  Entry& entry = entries_[block];
  entry.hash = hash;
  std::copy(tokens.begin(), tokens.end(), entry.tokens.begin());
  entry.present = true;
  ++size_;
  if (2 * size_ > table_.size()) {
    grow();
  } else {
    put(hash, block);
  }
}

void PrefixCache::put(const BlockHash& hash, std::uint32_t block) {
  const std::size_t mask = table_.size() - 1;
  std::size_t i = home(hash);
  while (table_[i].block != 0)
    i = (i + 1) & mask;
  table_[i] = {.tag = tag_of(hash), .block = block + 1};
}

void PrefixCache::grow() {
  table_.assign(2 * table_.size(), {});
  for (std::uint32_t block = 0; block < entries_.size(); ++block) {
    if (entries_[block].present) put(entries_[block].hash, block);
  }
}

void PrefixCache::erase(std::uint32_t block) {
  INVARIANT(contains(block)) << "block " << block << " has no name";
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = home(entries_[block].hash);
  while (table_[hole].block != block + 1)
    hole = (hole + 1) & mask;
  // What follows moves back into the hole unless that is before its home.
  for (std::size_t i = (hole + 1) & mask; table_[i].block != 0; i = (i + 1) & mask) {
    const std::size_t wanted = home(entries_[table_[i].block - 1].hash);
    if (((i - wanted) & mask) < ((i - hole) & mask)) continue;
    table_[hole] = table_[i];
    hole = i;
  }
  table_[hole] = {};
  entries_[block].present = false;
  --size_;
}

}  // namespace brigade::router
