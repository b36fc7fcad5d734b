// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/partition.h"

namespace brigade::worker {

/// Which tokens may be drawn, over one rank's share of the vocabulary. Whatever forbids tokens
/// (allowed ids, bad words, a minimal length, and one day a grammar) writes into the mask of the
/// row, and it is applied once, just before the draw.
class TokenMask final {
 public:
  /// All are allowed.
  explicit TokenMask(Range vocab);

  void allow_all();
  /// Tokens of other shares are left out.
  void allow_only(std::span<const std::int32_t> tokens);
  /// No effect on tokens of other shares.
  void forbid(std::int32_t token);

  /// logits: [vocab.size()]; minus infinity where a token is not allowed.
  void apply(std::span<float> logits) const;

 private:
  Range vocab_;
  std::vector<std::uint64_t> bits_;  ///< bit i % 64 of word i / 64: vocab_.begin + i is allowed
};

}  // namespace brigade::worker
