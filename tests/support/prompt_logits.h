// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/support/engine_grid.h"

namespace brigade::test {

using PromptLogits = std::map<std::uint32_t, std::vector<float>>;  ///< position -> [vocab_size]

/// Tokens below vocab_size, a function of the seed.
[[nodiscard]] std::vector<std::int32_t> some_tokens(std::size_t count, std::uint64_t seed,
                                                    std::int64_t vocab_size);

/// The logits that predict each position after one of `tokens`, fed in pieces of `chunk`, `mates`
/// other sequences going along.
[[nodiscard]] PromptLogits prompt_logits(EngineGrid& grid, const std::vector<std::int32_t>& tokens,
                                         std::size_t chunk, std::uint32_t mates = 0);

/// Ends the test unless both have the same positions and all logits are finite.
[[nodiscard]] float largest_difference(const PromptLogits& a, const PromptLogits& b);

}  // namespace brigade::test
