// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/core/last_samples.h"

#include <algorithm>

#include "common/base/strings.h"

namespace brigade::worker {

Status LastSamples::record(std::uint64_t step, std::span<const std::uint32_t> seqs,
                           std::span<const std::int32_t> tokens) {
  if (seqs.size() != tokens.size()) {
    return data_loss(
        str_cat("samples of step ", step, ": ", seqs.size(), " slots, ", tokens.size(), " tokens"));
  }
  for (std::size_t i = 0; i < seqs.size(); ++i) {
    if (seqs[i] >= slots_.size() || tokens[i] < 0 || tokens[i] >= vocab_size_) {
      return data_loss(str_cat("sample of step ", step, ": slot ", seqs[i], " of ", slots_.size(),
                               ", token ", tokens[i], " of ", vocab_size_));
    }
    slots_[seqs[i]] = {.filled = true, .step = step, .token = tokens[i]};
  }
  return {};
}

std::optional<std::uint64_t> LastSamples::needed_step(const StepInputs& inputs) {
  std::optional<std::uint64_t> newest;
  for (const StepInputs::PendingToken& pending : inputs.pending_tokens) {
    newest = std::max(newest.value_or(pending.step), pending.step);
  }
  return newest;
}

Status LastSamples::resolve(StepInputs& inputs) const {
  for (const StepInputs::PendingToken& pending : inputs.pending_tokens) {
    INVARIANT_LT(pending.seq, slots_.size());
    const Slot& slot = slots_[pending.seq];
    if (!slot.filled || slot.step != pending.step) {
      return data_loss(str_cat("sequence ", pending.seq, " has no sample of step ", pending.step));
    }
    inputs.tokens[static_cast<std::size_t>(pending.row)] = slot.token;
  }
  return {};
}

}  // namespace brigade::worker
