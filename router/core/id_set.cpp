// SPDX-License-Identifier: Apache-2.0
#include "router/core/id_set.h"

#include <bit>

#include "common/base/check.h"

namespace brigade::router {

IdSet::IdSet(std::size_t size, bool full) : size_(size) {
  std::size_t words = size;
  do {
    words = (words + 63) / 64;
    levels_.emplace_back(words == 0 ? 1 : words, 0);
  } while (words > 1);
  if (full) {
    for (std::size_t id = 0; id < size; ++id)
      insert(id);
  }
}

void IdSet::insert(std::size_t id) {
  INVARIANT_LT(id, size_);
  INVARIANT(!contains(id)) << id << " inserted twice";
  ++count_;
  for (std::vector<std::uint64_t>& level : levels_) {
    const bool was_empty = level[id / 64] == 0;
    level[id / 64] |= std::uint64_t{1} << (id % 64);
    if (!was_empty) return;
    id /= 64;
  }
}

void IdSet::erase(std::size_t id) {
  INVARIANT(contains(id)) << id << " erased, but not a member";
  --count_;
  for (std::vector<std::uint64_t>& level : levels_) {
    level[id / 64] &= ~(std::uint64_t{1} << (id % 64));
    if (level[id / 64] != 0) return;
    id /= 64;
  }
}

bool IdSet::contains(std::size_t id) const {
  return id < size_ && (levels_[0][id / 64] >> (id % 64) & 1) != 0;
}

std::optional<std::size_t> IdSet::lowest() const {
  if (count_ == 0) return std::nullopt;
  std::size_t id = 0;
  for (std::size_t level = levels_.size(); level-- > 0;) {
    id = id * 64 + static_cast<std::size_t>(std::countr_zero(levels_[level][id]));
  }
  return id;
}

}  // namespace brigade::router
