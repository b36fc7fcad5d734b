// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "common/wire/messages.h"

namespace brigade::wire {
namespace {

StepCommand sample_command() {
  return {.epoch = 7,
          .step = 3,
          .lane = 1,
          .release = {4},
          .admit = {{.seq = 0, .seed = 9, .temperature = 0.5F, .banned_tokens = {2}}},
          .seq = {0, 1},
          .position = {0, 8},
          .flags = {0, kSampleToken},
          .next_token = {-1, -1},
          .cu_tokens = {0, 2, 3},
          .tokens = {10, 11, 12},
          .cu_blocks = {0, 1, 1},
          .blocks = {5}};
}

std::function<void(StepCommand&)> with_controls(
    const std::function<void(SamplingControls&)>& change) {
  return [change](StepCommand& command) {
    auto controls = std::make_shared<SamplingControls>();
    change(*controls);
    command.admit[0].controls = controls;
  };
}

TEST_CASE("equal commands have equal plan hashes, and a change of any field changes the hash") {
  CHECK(plan_hash(sample_command()) == plan_hash(sample_command()));
  const std::vector<std::function<void(StepCommand&)>> changes = {
      [](StepCommand& c) { c.epoch = 8; },
      [](StepCommand& c) { c.step = 4; },
      [](StepCommand& c) { c.lane = 0; },
      [](StepCommand& c) { c.release = {3}; },
      [](StepCommand& c) { c.release.clear(); },
      [](StepCommand& c) { c.admit[0].seq = 1; },
      [](StepCommand& c) { c.admit[0].seed = 10; },
      [](StepCommand& c) { c.admit[0].temperature = 0.25F; },
      [](StepCommand& c) { c.admit[0].top_p = 0.25F; },
      [](StepCommand& c) { c.admit[0].top_k = 1; },
      [](StepCommand& c) { c.admit[0].num_logprobs = 1; },
      [](StepCommand& c) { c.admit[0].num_prompt_logprobs = 1; },
      [](StepCommand& c) { c.admit[0].banned_until_position = 1; },
      [](StepCommand& c) { c.admit[0].banned_tokens = {3}; },
      with_controls([](SamplingControls&) {}),
      with_controls([](SamplingControls& c) { c.min_p = 0.5F; }),
      with_controls([](SamplingControls& c) { c.typical_p = 0.5F; }),
      with_controls([](SamplingControls& c) { c.repetition_penalty = 2; }),
      with_controls([](SamplingControls& c) { c.presence_penalty = 1; }),
      with_controls([](SamplingControls& c) { c.frequency_penalty = 1; }),
      with_controls([](SamplingControls& c) {
        c.bias = {{5, 1}};
      }),
      with_controls([](SamplingControls& c) {
        c.bias = {{5, 2}};
      }),
      with_controls([](SamplingControls& c) { c.allowed_tokens = {5}; }),
      with_controls([](SamplingControls& c) {
        c.bad_words = {{5}, {6}};
      }),
      with_controls([](SamplingControls& c) {
        c.bad_words = {{5, 6}};
      }),
      with_controls([](SamplingControls& c) { c.prompt_tokens = {5}; }),
      with_controls([](SamplingControls& c) { c.output_tokens = {5}; }),
      [](StepCommand& c) { c.seq[1] = 2; },
      [](StepCommand& c) { c.position[1] = 9; },
      [](StepCommand& c) { c.flags[0] = kScorePrompt; },
      [](StepCommand& c) { c.next_token[0] = 1; },
      [](StepCommand& c) { c.cu_tokens[1] = 1; },
      [](StepCommand& c) { c.tokens[2] = 13; },
      [](StepCommand& c) { c.cu_blocks[1] = 0; },
      [](StepCommand& c) { c.blocks[0] = 6; },
  };
  std::set<std::uint64_t> hashes = {plan_hash(sample_command())};
  for (const auto& change : changes) {
    StepCommand command = sample_command();
    change(command);
    hashes.insert(plan_hash(command));
  }
  CHECK(hashes.size() == changes.size() + 1);
}

}  // namespace
}  // namespace brigade::wire
