// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brigade::model {

/// What becomes of two neighbouring tokens.
struct Merge {
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::int32_t rank = 0;  ///< the lowest in a piece is done first, ties leftmost
  std::int32_t merged = 0;
};

/// (left, right) -> (rank, merged): open addressing with linear probing in one flat table at most
/// half full.
class MergeTable final {
 public:
  /// Of several merges of one pair the last counts, as in HF tokenizers. Their ids are not
  /// negative.
  explicit MergeTable(const std::vector<Merge>& merges);
  [[nodiscard]] const Merge* find(std::int32_t left, std::int32_t right) const;

 private:
  [[nodiscard]] std::size_t slot_of(std::int32_t left, std::int32_t right) const;
  std::vector<Merge> slots_;  ///< power of two; left = -1: empty
};

/// Joins neighbouring symbols of one piece of text into tokens, the best merge first.
class Bpe final {
 public:
  explicit Bpe(const std::vector<Merge>& merges) : merges_(merges) {}

  /// Merges ids[begin, end of ids) in place. Negative ids are joined to nothing. O(n log n).
  void merge(std::vector<std::int32_t>& ids, std::size_t begin) const;

 private:
  void merge_short(std::vector<std::int32_t>& ids, std::size_t begin) const;
  void merge_long(std::vector<std::int32_t>& ids, std::size_t begin) const;

  MergeTable merges_;
};

}  // namespace brigade::model
