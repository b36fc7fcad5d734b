// SPDX-License-Identifier: Apache-2.0
#include "common/model/bpe.h"

#include <array>
#include <limits>
#include <queue>
#include <tuple>

#include "common/base/check.h"
#include "common/base/random.h"

namespace brigade::model {
namespace {

/// Up to here scanning all pairs for each merge beats a heap.
constexpr std::size_t kShortPiece = 24;

/// A token of a piece while it is being merged: a doubly linked list in an array, by position.
struct Symbol {
  std::int32_t id;
  std::int32_t previous;  // -1: none
  std::int32_t next;      // -1: none
};

/// A merge that was possible when it was queued. Stale when either token has changed since.
struct Candidate {
  std::int32_t rank;
  std::int32_t left;  // position
  std::int32_t left_id;
  std::int32_t right_id;
  std::int32_t merged;

  bool operator>(const Candidate& other) const {
    return std::tie(rank, left) > std::tie(other.rank, other.left);
  }
};

}  // namespace

MergeTable::MergeTable(const std::vector<Merge>& merges) {
  std::size_t size = 16;
  while (size < merges.size() * 2)
    size *= 2;
  slots_.assign(size, Merge{.left = -1, .right = 0, .rank = 0, .merged = 0});
  for (const Merge& merge : merges)
    slots_[slot_of(merge.left, merge.right)] = merge;
}

std::size_t MergeTable::slot_of(std::int32_t left, std::int32_t right) const {
  const auto key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
  std::size_t slot = mix64(key) & (slots_.size() - 1);
  while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

const Merge* MergeTable::find(std::int32_t left, std::int32_t right) const {
  const Merge& merge = slots_[slot_of(left, right)];
  return merge.left < 0 ? nullptr : &merge;
}

void Bpe::merge(std::vector<std::int32_t>& ids, std::size_t begin) const {
  const std::size_t size = ids.size() - begin;
  INVARIANT_LT(size, std::size_t{std::numeric_limits<std::int32_t>::max()});
  if (size <= kShortPiece) {
    merge_short(ids, begin);
  } else {
    merge_long(ids, begin);
  }
}

void Bpe::merge_short(std::vector<std::int32_t>& ids, std::size_t begin) const {
  // merges[i] is that of ids[begin + i] and the next.
  std::array<const Merge*, kShortPiece> merges{};
  std::size_t size = ids.size() - begin;
  for (std::size_t i = 0; i + 1 < size; ++i) {
    merges[i] = merges_.find(ids[begin + i], ids[begin + i + 1]);
  }
  while (true) {
    std::size_t best = size;
    std::int32_t best_rank = std::numeric_limits<std::int32_t>::max();
    for (std::size_t i = 0; i + 1 < size; ++i) {
      if (merges[i] != nullptr && merges[i]->rank < best_rank) {
        best = i;
        best_rank = merges[i]->rank;
      }
    }
    if (best == size) break;
    ids[begin + best] = merges[best]->merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(begin + best + 1));
    --size;
    for (std::size_t i = best + 1; i + 1 < size; ++i)
      merges[i] = merges[i + 1];
    const auto refresh = [&](std::size_t i) {
      merges[i] = merges_.find(ids[begin + i], ids[begin + i + 1]);
    };
    if (best > 0) refresh(best - 1);
    if (best + 1 < size) refresh(best);
  }
}

void Bpe::merge_long(std::vector<std::int32_t>& ids, std::size_t begin) const {
  const auto size = static_cast<std::int32_t>(ids.size() - begin);
  std::vector<Symbol> symbols(ids.size() - begin);
  for (std::int32_t i = 0; i < size; ++i) {
    symbols[i] = {ids[begin + i], i - 1, i + 1 < size ? i + 1 : -1};
  }
  std::vector<Candidate> storage;
  storage.reserve(symbols.size());
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue({},
                                                                               std::move(storage));
  const auto enqueue = [&](std::int32_t left) {
    if (left < 0 || symbols[left].next < 0) return;
    const std::int32_t right_id = symbols[symbols[left].next].id;
    const Merge* merge = merges_.find(symbols[left].id, right_id);
    if (merge == nullptr) return;
    queue.push({merge->rank, left, symbols[left].id, right_id, merge->merged});
  };
  for (std::int32_t i = 0; i + 1 < size; ++i)
    enqueue(i);
  // Each merge takes one symbol away and queues at most two candidates: at most 3 n pushes in all.
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = symbols[top.left];
    if (left.id != top.left_id || left.next < 0 || symbols[left.next].id != top.right_id) continue;
    Symbol& right = symbols[left.next];
    left.id = top.merged;
    left.next = right.next;
    if (right.next >= 0) symbols[right.next].previous = top.left;
    right.id = -1;
    enqueue(left.previous);
    enqueue(top.left);
  }
  ids.resize(begin);
  for (std::int32_t i = 0; i >= 0; i = symbols[i].next)
    ids.push_back(symbols[i].id);
}

}  // namespace brigade::model
