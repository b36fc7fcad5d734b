// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brigade::test {

/// One line of tests/golden/smollm2-135m-q4_1/greedy.jsonl: a float64 run of the model.
struct GoldenPrompt {
  std::string id;
  std::vector<std::int32_t> prompt_ids;
  std::vector<std::int32_t> greedy_ids;
  /// The five best at each generated position, best first.
  std::vector<std::vector<std::int32_t>> top_ids;
  std::vector<std::vector<double>> top_logits;
  std::vector<std::int32_t> first_logit_ids;  ///< 64 ids, and their logits after the prompt
  std::vector<double> first_logits;
};

/// All prompts, or an empty list with nothing read when the folder is not there. Read from the
/// repository root.
[[nodiscard]] std::vector<GoldenPrompt> read_golden();

/// True with BRIGADE_FULL=1: the whole sweep instead of a part that takes a minute or two.
[[nodiscard]] bool full_sweep();

}  // namespace brigade::test
