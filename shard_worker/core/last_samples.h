// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "shard_worker/core/step_inputs.h"

namespace brigade::worker {

/// Each slot's newest sample, so that the first stage can fill in tokens that a command does not
/// hold (TokenSource). A sample is used only for the step that drew it, which fixes its position:
/// slots are reused, so an older sample, or one of a forgotten sequence, never stands in for the
/// awaited one.
class LastSamples final {
 public:
  LastSamples(std::uint32_t max_seqs, std::int64_t vocab_size)
      : vocab_size_(vocab_size), slots_(max_seqs) {}

  /// Keeps the samples of one step, tokens[i] of slot seqs[i]. kDataLoss when the lengths differ,
  /// or a slot or token is out of range.
  Status record(std::uint64_t step, std::span<const std::uint32_t> seqs,
                std::span<const std::int32_t> tokens);

  /// The newest step whose samples are needed before resolve() can fill `inputs`; nothing when none
  /// is.
  [[nodiscard]] static std::optional<std::uint64_t> needed_step(const StepInputs& inputs);

  /// Fills in inputs.tokens at the pending rows. kDataLoss when a sample is missing.
  Status resolve(StepInputs& inputs) const;

 private:
  struct Slot {
    bool filled = false;
    std::uint64_t step = 0;
    std::int32_t token = 0;
  };
  std::int64_t vocab_size_;
  std::vector<Slot> slots_;  ///< [max_seqs]
};

}  // namespace brigade::worker
