// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace brigade::router {

/// BLAKE2b of 32 bytes.
using BlockHash = std::array<std::uint8_t, 32>;

/// What must be equal for two requests to share KV at all.
struct PrefixScope {
  std::string_view model_digest;
  std::string_view salt;  ///< tenants do not see each other's prompts, not even by timing
};

/// The names of a request's whole KV blocks: the hash of block i is over that of block i - 1 and
/// the 16 tokens of block i; that of "block -1" is over the scope. Each token is hashed once.
class PrefixChain final {
 public:
  /// A chain that names nothing: the request shares no KV.
  PrefixChain() = default;
  explicit PrefixChain(const PrefixScope& scope);
  /// For requests that share with their own group alone (forks without a prefix cache).
  explicit PrefixChain(std::uint64_t group);

  [[nodiscard]] bool enabled() const { return enabled_; }
  /// Hashes the whole blocks of `tokens` that it has not seen. What it has seen must not change.
  void extend(std::span<const std::int32_t> tokens);
  [[nodiscard]] std::span<const BlockHash> hashes() const { return hashes_; }

 private:
  bool enabled_ = false;
  BlockHash root_ = {};
  std::vector<BlockHash> hashes_;  ///< [whole blocks hashed]
};

}  // namespace brigade::router
