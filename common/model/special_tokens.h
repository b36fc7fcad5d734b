// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace brigade::model {

/// Finds the texts of special tokens in raw text: leftmost, and the longest at each place. A trie
/// over bytes; the work at a place ends where no special token goes on, so that the whole is O(text
/// x longest special token).
class SpecialTokens final {
 public:
  static constexpr std::size_t kMaxLength = 256;  ///< bytes of a token's text

  struct Match {
    std::size_t begin;
    std::size_t length;
    std::int32_t id;
  };

  SpecialTokens() : nodes_(1) {}

  /// `text` is not empty and at most kMaxLength long.
  void add(std::string_view text, std::int32_t id);

  /// The first match at or after `from`.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  struct Node {
    std::int32_t id = -1;                                          ///< the token that ends here
    std::vector<std::pair<std::uint8_t, std::uint32_t>> children;  ///< (byte, node), by byte
  };
  [[nodiscard]] std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;  ///< 0: none

  std::vector<Node> nodes_;  ///< the root first
  std::array<bool, 256> starts_{};
};

}  // namespace brigade::model
