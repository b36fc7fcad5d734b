// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/token_mask.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace brigade::worker {

TokenMask::TokenMask(Range vocab)
    : vocab_(vocab), bits_(static_cast<std::size_t>((vocab.size() + 63) / 64), ~std::uint64_t{0}) {}

void TokenMask::allow_all() {
  std::fill(bits_.begin(), bits_.end(), ~std::uint64_t{0});
}

void TokenMask::allow_only(std::span<const std::int32_t> tokens) {
  std::fill(bits_.begin(), bits_.end(), 0);
  for (const std::int32_t token : tokens) {
    if (!vocab_.contains(token)) continue;
    const auto i = static_cast<std::size_t>(token - vocab_.begin);
    bits_[i / 64] |= std::uint64_t{1} << (i % 64);
  }
}

void TokenMask::forbid(std::int32_t token) {
  if (!vocab_.contains(token)) return;
  const auto i = static_cast<std::size_t>(token - vocab_.begin);
  bits_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
}

void TokenMask::apply(std::span<float> logits) const {
  INVARIANT_EQ(static_cast<std::int64_t>(logits.size()), vocab_.size());
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    if (bits_[word] == ~std::uint64_t{0}) continue;
    const std::size_t end = std::min(logits.size(), 64 * (word + 1));
    for (std::size_t i = 64 * word; i < end; ++i) {
      if ((bits_[word] >> (i % 64) & 1) == 0) logits[i] = -std::numeric_limits<float>::infinity();
    }
  }
}

}  // namespace brigade::worker
