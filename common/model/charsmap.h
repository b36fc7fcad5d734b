// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace brigade::model {

/// SentencePiece's `precompiled_charsmap`: which sequences of characters stand for which others
/// (NFKC, mostly). A double-array trie over bytes (the format of darts-clone: github.com/
/// s-yata/darts-clone) whose values are places in a block of NUL-terminated texts.
class Charsmap final {
 public:
  /// What stands in place of the first bytes of a text.
  struct Step {
    std::string_view text;  ///< in the map, in the source, or static; may be empty
    std::size_t length;     ///< bytes of the source, at least 1
  };

  /// The longest text that a sequence may become, in bytes; NFKC's longest has 33. It bounds the
  /// memory that a text takes.
  static constexpr std::size_t kMaxText = 256;

  /// Maps everything to itself.
  Charsmap() = default;
  /// `blob`: a uint32 with the trie's size in bytes, the trie's units of 32 bits, the texts; all
  /// little-endian. An error says what is wrong with it.
  static Result<Charsmap> parse(std::string_view blob);

  /// The longest sequence of the map at the start of `source` (not empty), or its first character
  /// as it is; U+FFFD for what is not UTF-8.
  [[nodiscard]] Step step(std::string_view source) const;

 private:
  struct Match {
    std::size_t length = 0;  ///< 0: none
    std::uint32_t value = 0;
  };
  [[nodiscard]] Match longest_match(std::string_view source) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace brigade::model
