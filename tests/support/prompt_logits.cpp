// SPDX-License-Identifier: Apache-2.0
#include "tests/support/prompt_logits.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/random.h"

namespace brigade::test {

std::vector<std::int32_t> some_tokens(std::size_t count, std::uint64_t seed,
                                      std::int64_t vocab_size) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<std::int32_t>(static_cast<double>(vocab_size) * random_uniform(seed, i)));
  }
  return tokens;
}

PromptLogits prompt_logits(EngineGrid& grid, const std::vector<std::int32_t>& tokens,
                           std::size_t chunk, std::uint32_t mates) {
  PromptLogits rows;
  grid.observe_logits([&](const worker::ScoreRow& row, std::span<const float> logits) {
    if (row.seq == 0) rows[row.position] = {logits.begin(), logits.end()};
  });
  for (std::size_t at = 0; at < tokens.size(); at += chunk) {
    const std::size_t count = std::min(chunk, tokens.size() - at);
    const bool last = at + count == tokens.size();
    std::vector<Piece> pieces;
    for (std::uint32_t mate = 1; mate <= mates; ++mate) {
      pieces.push_back(
          {.seq = mate, .tokens = some_tokens(1 + mate % 3, mate + at, grid.spec().vocab_size)});
    }
    Piece own{.seq = 0, .flags = wire::kScorePrompt};
    own.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                      tokens.begin() + static_cast<std::ptrdiff_t>(at + count));
    own.next_token = last ? 0 : tokens[at + count];
    pieces.insert(pieces.begin() + mates / 2, own);
    grid.step(pieces);
  }
  for (std::uint32_t seq = 0; seq <= mates; ++seq)
    grid.release(seq);
  return rows;
}

float largest_difference(const PromptLogits& a, const PromptLogits& b) {
  INVARIANT_EQ(a.size(), b.size());
  float largest = 0;
  for (const auto& [position, logits] : a) {
    const std::vector<float>& other = b.at(position);
    INVARIANT_EQ(logits.size(), other.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      INVARIANT(std::isfinite(logits[i])) << logits[i] << " at position " << position;
      largest = std::max(largest, std::abs(logits[i] - other[i]));
    }
  }
  return largest;
}

}  // namespace brigade::test
