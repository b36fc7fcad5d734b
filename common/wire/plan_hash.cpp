// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "common/base/random.h"
#include "common/wire/messages.h"

namespace brigade::wire {
namespace {

/// Chained mix64 over 64-bit words. Lists are preceded by their length, so that moving an element
/// from one list to the next changes the hash.
class Hasher final {
 public:
  void add(std::uint64_t word) { state_ = mix64(state_ ^ word); }

  template <typename T>
  void add_list(const std::vector<T>& values) {
    add(values.size());
    for (T value : values)
      add(static_cast<std::uint64_t>(value));
  }

  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x6272696761646531U;  // "brigade1"
};

void add_controls(Hasher& hash, const SamplingControls& controls) {
  for (const float value : {controls.min_p, controls.typical_p, controls.repetition_penalty,
                            controls.presence_penalty, controls.frequency_penalty}) {
    hash.add(std::bit_cast<std::uint32_t>(value));
  }
  hash.add(controls.bias.size());
  for (const TokenBias& bias : controls.bias) {
    hash.add(static_cast<std::uint64_t>(bias.token));
    hash.add(std::bit_cast<std::uint32_t>(bias.bias));
  }
  hash.add_list(controls.allowed_tokens);
  hash.add(controls.bad_words.size());
  for (const std::vector<std::int32_t>& word : controls.bad_words)
    hash.add_list(word);
  hash.add_list(controls.prompt_tokens);
  hash.add_list(controls.output_tokens);
}

void add_admit(Hasher& hash, const SequenceAdmit& admit) {
  hash.add(admit.seq);
  hash.add(admit.seed);
  hash.add(std::bit_cast<std::uint32_t>(admit.temperature));
  hash.add(std::bit_cast<std::uint32_t>(admit.top_p));
  hash.add(static_cast<std::uint64_t>(admit.top_k));
  hash.add(static_cast<std::uint64_t>(admit.num_logprobs));
  hash.add(static_cast<std::uint64_t>(admit.num_prompt_logprobs));
  hash.add(admit.banned_until_position);
  hash.add_list(admit.banned_tokens);
  hash.add(admit.controls == nullptr ? 0 : 1);
  if (admit.controls != nullptr) add_controls(hash, *admit.controls);
}

}  // namespace

std::uint64_t plan_hash(const StepCommand& command) {
  Hasher hash;
  hash.add(command.epoch);
  hash.add(command.step);
  hash.add(command.lane);
  hash.add_list(command.release);
  hash.add(command.admit.size());
  for (const SequenceAdmit& admit : command.admit)
    add_admit(hash, admit);
  hash.add_list(command.seq);
  hash.add_list(command.position);
  hash.add_list(command.flags);
  hash.add_list(command.next_token);
  hash.add_list(command.cu_tokens);
  hash.add_list(command.tokens);
  hash.add_list(command.cu_blocks);
  hash.add_list(command.blocks);
  hash.add_list(command.copy_from);
  hash.add_list(command.copy_to);
  return hash.value();
}

}  // namespace brigade::wire
