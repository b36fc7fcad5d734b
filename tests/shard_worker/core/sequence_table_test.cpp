// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/core/sequence_table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>

namespace brigade::worker {
namespace {

using wire::StepCommand;

constexpr SequenceLimits kLimits{
    .epoch = 7, .max_seqs = 4, .max_step_tokens = 32, .num_kv_blocks = 8, .vocab_size = 100};

/// Adds one sequence's part to a command.
void add(StepCommand& command, std::uint32_t seq, std::uint32_t position,
         std::vector<std::int32_t> tokens, std::uint8_t flags,
         std::vector<std::uint32_t> blocks = {}, std::int32_t next_token = -1) {
  command.seq.push_back(seq);
  command.position.push_back(position);
  command.flags.push_back(flags);
  command.next_token.push_back(next_token);
  command.tokens.insert(command.tokens.end(), tokens.begin(), tokens.end());
  command.cu_tokens.push_back(static_cast<std::uint32_t>(command.tokens.size()));
  command.blocks.insert(command.blocks.end(), blocks.begin(), blocks.end());
  command.cu_blocks.push_back(static_cast<std::uint32_t>(command.blocks.size()));
}

StepCommand empty_command(std::uint64_t step) {
  return {.epoch = 7, .step = step, .cu_tokens = {0}, .cu_blocks = {0}};
}

/// Step 1: slot 2 prefills 3 tokens and samples, slot 0 prefills 18 of a longer prompt.
StepCommand first_command() {
  StepCommand command = empty_command(1);
  command.lane = 3;
  command.admit = {{.seq = 2}, {.seq = 0}};
  add(command, 2, 0, {10, 11, 12}, wire::kSampleToken, {5});
  std::vector<std::int32_t> prompt(18);
  for (int i = 0; i < 18; ++i)
    prompt[static_cast<std::size_t>(i)] = 20 + i;
  add(command, 0, 0, prompt, 0, {1, 6});
  return command;
}

TEST_CASE("a mixed step becomes flat arrays with slots, context lengths and score rows") {
  SequenceTable table(kLimits);
  StepInputs inputs;
  const StepCommand command = first_command();
  REQUIRE(table.apply(command, inputs).ok());
  CHECK(inputs.epoch == 7);
  CHECK(inputs.step == 1);
  CHECK(inputs.lane == 3);
  CHECK(inputs.plan_hash == wire::plan_hash(command));
  REQUIRE(inputs.admitted.size() == 2);
  CHECK(inputs.admitted[0]->seq == 2);
  CHECK(inputs.admitted[1]->seq == 0);
  CHECK(inputs.tokens == command.tokens);
  CHECK(inputs.positions[2] == 2);
  CHECK(inputs.positions[3] == 0);
  CHECK(inputs.positions[20] == 17);
  CHECK(inputs.slot_mapping[1] == 5 * 16 + 1);
  CHECK(inputs.slot_mapping[3 + 15] == 1 * 16 + 15);
  CHECK(inputs.slot_mapping[3 + 16] == 6 * 16);
  CHECK(inputs.cu_seqlens_q == std::vector<std::int32_t>{0, 3, 21});
  CHECK(inputs.context_lens == std::vector<std::int32_t>{3, 18});
  CHECK(inputs.cu_blocks == std::vector<std::int32_t>{0, 1, 3});
  CHECK(inputs.block_tables == std::vector<std::int32_t>{5, 1, 6});
  REQUIRE(inputs.score_rows.size() == 1);
  CHECK(inputs.score_rows[0].row == 2);
  CHECK(inputs.score_rows[0].seq == 2);
  CHECK(inputs.score_rows[0].position == 3);
  CHECK(inputs.score_rows[0].sample);
  CHECK(inputs.score_rows[0].params->seq == 2);
  CHECK(inputs.pending_tokens.empty());
  CHECK(table.num_open() == 2);
}

TEST_CASE("a decode step takes its token from the sample of the step that drew it") {
  SequenceTable table(kLimits);
  StepInputs inputs;
  REQUIRE(table.apply(first_command(), inputs).ok());
  StepCommand other = empty_command(2);
  add(other, 0, 18, {1}, 0);
  REQUIRE(table.apply(other, inputs).ok());
  StepCommand command = empty_command(3);
  add(command, 2, 3, {-1}, wire::kTokenFromSample | wire::kSampleToken);
  REQUIRE(table.apply(command, inputs).ok());
  REQUIRE(inputs.pending_tokens.size() == 1);
  CHECK(inputs.pending_tokens[0].row == 0);
  CHECK(inputs.pending_tokens[0].seq == 2);
  CHECK(inputs.pending_tokens[0].step == 1);
  CHECK(inputs.context_lens == std::vector<std::int32_t>{4});
  CHECK(inputs.slot_mapping == std::vector<std::int32_t>{5 * 16 + 3});
}

TEST_CASE(
    "prompt scoring gives each row the token after it, across chunks, and none to the prompt's "
    "last") {
  SequenceTable table(kLimits);
  StepInputs inputs;
  StepCommand first = empty_command(1);
  first.admit = {{.seq = 1, .num_prompt_logprobs = 2}};
  add(first, 1, 0, {30, 31}, wire::kScorePrompt, {0}, /*next_token=*/32);
  REQUIRE(table.apply(first, inputs).ok());
  REQUIRE(inputs.score_rows.size() == 2);
  CHECK(inputs.score_rows[0].target == 31);
  CHECK(inputs.score_rows[0].position == 1);
  CHECK(inputs.score_rows[1].target == 32);
  CHECK(inputs.score_rows[1].position == 2);
  CHECK_FALSE(inputs.score_rows[1].sample);

  StepCommand last = empty_command(2);
  add(last, 1, 2, {32, 33}, wire::kScorePrompt | wire::kSampleToken);
  REQUIRE(table.apply(last, inputs).ok());
  REQUIRE(inputs.score_rows.size() == 2);
  CHECK(inputs.score_rows[0].row == 0);
  CHECK(inputs.score_rows[0].target == 33);
  CHECK(inputs.score_rows[1].row == 1);
  CHECK(inputs.score_rows[1].sample);
  CHECK(inputs.score_rows[1].position == 4);
}

TEST_CASE("a slot is reused after release, and a cached prefix lets a sequence begin anywhere") {
  SequenceTable table(kLimits);
  StepInputs inputs;
  REQUIRE(table.apply(first_command(), inputs).ok());
  StepCommand command = empty_command(2);
  command.release = {2};
  command.admit = {{.seq = 2, .seed = 77}};
  add(command, 2, 16, {50}, wire::kSampleToken, {3, 4});
  REQUIRE(table.apply(command, inputs).ok());
  CHECK(inputs.positions == std::vector<std::int32_t>{16});
  CHECK(inputs.slot_mapping == std::vector<std::int32_t>{4 * 16});
  CHECK(inputs.block_tables == std::vector<std::int32_t>{3, 4});
  CHECK(inputs.score_rows[0].params->seed == 77);
}

TEST_CASE("block copies come with the step that they are to precede, and no other") {
  SequenceTable table(kLimits);
  StepInputs inputs;
  StepCommand command = first_command();
  command.copy_from = {3, 3};
  command.copy_to = {5, 6};
  REQUIRE(table.apply(command, inputs).ok());
  REQUIRE(inputs.block_copies.size() == 2);
  CHECK(inputs.block_copies[1].from == 3);
  CHECK(inputs.block_copies[1].to == 6);
  command = empty_command(2);
  REQUIRE(table.apply(command, inputs).ok());
  CHECK(inputs.block_copies.empty());
}

TEST_CASE("a step without sequences is allowed: it may only release") {
  SequenceTable table(kLimits);
  StepInputs inputs;
  REQUIRE(table.apply(first_command(), inputs).ok());
  StepCommand command = empty_command(2);
  command.release = {0, 2};
  REQUIRE(table.apply(command, inputs).ok());
  CHECK(inputs.num_tokens() == 0);
  CHECK(inputs.cu_seqlens_q == std::vector<std::int32_t>{0});
  CHECK(table.num_open() == 0);
}

/// Admits slot 1 with these controls.
std::function<void(StepCommand&)> controlled(wire::SamplingControls controls) {
  auto shared = std::make_shared<wire::SamplingControls>(std::move(controls));
  return [shared](StepCommand& c) { c.admit = {{.seq = 1, .controls = shared}}; };
}

struct BadCase {
  const char* names;  ///< what the message must hold
  std::function<void(StepCommand&)> change;
};

/// Changes to step 2 after first_command(): slot 2 decodes from its sample, slot 0 goes on with its
/// prompt.
const std::vector<BadCase>& bad_cases() {
  static const std::vector<BadCase> cases = {
      {"epoch 8", [](StepCommand& c) { c.epoch = 8; }},
      {"step 4", [](StepCommand& c) { c.step = 4; }},
      {"position has 1", [](StepCommand& c) { c.position.pop_back(); }},
      {"flags has 3", [](StepCommand& c) { c.flags.push_back(0); }},
      {"next_token has 0", [](StepCommand& c) { c.next_token.clear(); }},
      {"cu_tokens has 0", [](StepCommand& c) { c.cu_tokens.clear(); }},
      {"cu_tokens[0] is 1", [](StepCommand& c) { c.cu_tokens[0] = 1; }},
      {"cu_tokens[2] falls",
       [](StepCommand& c) {
         c.cu_tokens = {0, 3, 2};
       }},
      {"cu_tokens ends at 9", [](StepCommand& c) { c.cu_tokens[2] = 9; }},
      {"cu_blocks ends at 4000000000", [](StepCommand& c) { c.cu_blocks[2] = 4000000000U; }},
      {"sequence 9: in a step", [](StepCommand& c) { c.seq[0] = 9; }},
      {"sequence 3: in a step", [](StepCommand& c) { c.seq[0] = 3; }},
      {"sequence 0: twice",
       [](StepCommand& c) {
         c.seq = {0, 0};
         c.position[0] = 18;
         c.flags[0] = 0;
         c.tokens[0] = 1;
       }},
      {"position 4 does not continue at 3", [](StepCommand& c) { c.position[0] = 4; }},
      {"no tokens",
       [](StepCommand& c) {
         c.cu_tokens = {0, 0, 3};
       }},
      {"unknown flags 128", [](StepCommand& c) { c.flags[1] = 128; }},
      {"no sample before",
       [](StepCommand& c) {
         c.flags[1] = wire::kTokenFromSample;
         c.tokens = {-1, -1};
         c.cu_tokens = {0, 1, 2};
       }},
      {"token from sample with 2 tokens", [](StepCommand& c) { c.cu_tokens[1] = 2; }},
      {"token 5, not -1", [](StepCommand& c) { c.tokens[0] = 5; }},
      {"token -1 is not in the vocabulary", [](StepCommand& c) { c.tokens[1] = -1; }},
      {"token 100 is not in the vocabulary", [](StepCommand& c) { c.tokens[2] = 100; }},
      {"next_token 5 with flags 0", [](StepCommand& c) { c.next_token[1] = 5; }},
      {"next_token 100 is not",
       [](StepCommand& c) {
         c.next_token[1] = 100;
         c.flags[1] = wire::kScorePrompt;
       }},
      {"block 8, there are 8", [](StepCommand& c) { c.blocks[0] = 8; }},
      {"33 tokens do not fit",
       [](StepCommand& c) {
         c.tokens.assign(16, 1);
         c.tokens[0] = -1;
         c.cu_tokens = {0, 1, 16};
         c.blocks.clear();
         c.cu_blocks = {0, 0, 0};
       }},
      {"block table of 9",
       [](StepCommand& c) {
         c.blocks.assign(7, 0);
         c.cu_blocks = {0, 0, 7};
       }},
      {"33 tokens, at most 32", [](StepCommand& c) { c.tokens.assign(33, 1); }},
      {"5 sequences, at most 4", [](StepCommand& c) { c.seq.assign(5, 0); }},
      {"sequence 1: released", [](StepCommand& c) { c.release = {1}; }},
      {"sequence 77: released", [](StepCommand& c) { c.release = {77}; }},
      {"sequence 2: admitted twice", [](StepCommand& c) { c.admit = {{.seq = 2}}; }},
      {"sequence 4: admitted, but there are 4", [](StepCommand& c) { c.admit = {{.seq = 4}}; }},
      {"temperature nan",
       [](StepCommand& c) { c.admit = {{.seq = 1, .temperature = std::nanf("")}}; }},
      {"temperature -1", [](StepCommand& c) { c.admit = {{.seq = 1, .temperature = -1}}; }},
      {"top_p 0", [](StepCommand& c) { c.admit = {{.seq = 1, .top_p = 0}}; }},
      {"top_k -1", [](StepCommand& c) { c.admit = {{.seq = 1, .top_k = -1}}; }},
      {"21 logprobs", [](StepCommand& c) { c.admit = {{.seq = 1, .num_logprobs = 21}}; }},
      {"copy_to has 0", [](StepCommand& c) { c.copy_from = {1}; }},
      {"block 8 is copied to 3",
       [](StepCommand& c) {
         c.copy_from = {8};
         c.copy_to = {3};
       }},
      {"block 3 is copied to 3",
       [](StepCommand& c) {
         c.copy_from = {3};
         c.copy_to = {3};
       }},
      {"5 block copies, at most 4",
       [](StepCommand& c) {
         c.copy_from.assign(5, 1);
         c.copy_to.assign(5, 2);
       }},
      {"banned token 100", [](StepCommand& c) { c.admit = {{.seq = 1, .banned_tokens = {100}}}; }},
      {"min_p 2", controlled({.min_p = 2})},
      {"typical_p 0", controlled({.typical_p = 0})},
      {"repetition_penalty nan", controlled({.repetition_penalty = std::nanf("")})},
      {"penalty 2000", controlled({.presence_penalty = 2000})},
      {"penalty -2000", controlled({.frequency_penalty = -2000})},
      {"bias 1 of token 100", controlled({.bias = {{100, 1}}})},
      {"bias inf of token 1", controlled({.bias = {{1, INFINITY}}})},
      {"allowed token -1", controlled({.allowed_tokens = {-1}})},
      {"an empty bad word", controlled({.bad_words = {{}}})},
      {"bad word's token 100", controlled({.bad_words = {{1, 100}}})},
      {"prompt token 100", controlled({.prompt_tokens = {100}})},
      {"output token 100", controlled({.output_tokens = {100}})},
  };
  return cases;
}

StepCommand second_command() {
  StepCommand command = empty_command(2);
  add(command, 2, 3, {-1}, wire::kTokenFromSample | wire::kSampleToken);
  add(command, 0, 18, {1, 2}, 0, {7});
  return command;
}

TEST_CASE("a command that breaks a rule is a Status that names it, and ends the table") {
  for (const BadCase& bad : bad_cases()) {
    CAPTURE(bad.names);
    SequenceTable table(kLimits);
    StepInputs inputs;
    REQUIRE(table.apply(first_command(), inputs).ok());
    StepCommand command = second_command();
    bad.change(command);
    const Status status = table.apply(command, inputs);
    CAPTURE(status.message());
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.message().find(bad.names) != std::string::npos);
    CHECK_FALSE(table.apply(second_command(), inputs).ok());
  }
}

TEST_CASE("the same step unchanged is accepted") {
  SequenceTable table(kLimits);
  StepInputs inputs;
  REQUIRE(table.apply(first_command(), inputs).ok());
  CHECK(table.apply(second_command(), inputs).ok());
}

TEST_CASE("random commands never give inputs outside the limits") {
  std::mt19937 rng(1);
  const auto below = [&rng](std::uint32_t n) { return static_cast<std::uint32_t>(rng() % n); };
  for (int round = 0; round < 3000; ++round) {
    SequenceTable table(kLimits);
    StepInputs inputs;
    REQUIRE(table.apply(first_command(), inputs).ok());
    StepCommand command = second_command();
    for (std::vector<std::uint32_t>* field : {&command.seq, &command.position, &command.cu_tokens,
                                              &command.cu_blocks, &command.blocks}) {
      if (below(3) == 0)
        (*field)[below(static_cast<std::uint32_t>(field->size()))] =
            below(2) == 0 ? below(40) : static_cast<std::uint32_t>(rng());
    }
    if (below(3) == 0) command.tokens[below(3)] = static_cast<std::int32_t>(below(120)) - 10;
    if (below(3) == 0) command.flags[below(2)] = static_cast<std::uint8_t>(below(9));
    if (below(3) == 0) command.next_token[below(2)] = static_cast<std::int32_t>(below(120)) - 10;
    if (!table.apply(command, inputs).ok()) continue;
    for (std::size_t i = 0; i < inputs.tokens.size(); ++i) {
      CHECK(inputs.tokens[i] < kLimits.vocab_size);
      CHECK(inputs.slot_mapping[i] >= 0);
      CHECK(inputs.slot_mapping[i] < static_cast<std::int32_t>(kLimits.num_kv_blocks) * 16);
    }
    for (std::size_t i = 0; i < inputs.context_lens.size(); ++i) {
      CHECK(inputs.context_lens[i] <= 16 * (inputs.cu_blocks[i + 1] - inputs.cu_blocks[i]));
    }
    for (const ScoreRow& row : inputs.score_rows)
      CHECK(row.row < inputs.num_tokens());
  }
}

}  // namespace
}  // namespace brigade::worker
