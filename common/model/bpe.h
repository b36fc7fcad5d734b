// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
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
  /// Of several merges of one pair the last counts, as in HF tokenizers. Ids are non-negative.
  explicit MergeTable(const std::vector<Merge>& merges);
  [[nodiscard]] const Merge* find(std::int32_t left, std::int32_t right) const;

 private:
  [[nodiscard]] std::size_t slot_of(std::int32_t left, std::int32_t right) const;
  std::vector<Merge> slots_;  ///< power of two; left = -1: empty
};

/// Byte-level BPE of one piece of text.
class Bpe final {
 public:
  /// `byte_ids[b]` is the token of byte b, or -1 where the vocabulary has none: such bytes are
  /// dropped, and their neighbours meet, as in HF tokenizers without an unknown token.
  Bpe(const std::array<std::int32_t, 256>& byte_ids, const std::vector<Merge>& merges)
      : byte_ids_(byte_ids), merges_(merges) {}

  /// Appends the ids of `piece`. O(n log n).
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  void merge_short(std::vector<std::int32_t>& ids, std::size_t begin) const;
  void merge_long(std::vector<std::int32_t>& ids, std::size_t begin) const;

  std::array<std::int32_t, 256> byte_ids_;
  MergeTable merges_;
};

}  // namespace brigade::model
