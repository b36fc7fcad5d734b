// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/router/core/support/replica_driver.h"

namespace brigade::router {
namespace {

using testing::FakeTokenizer;
using testing::ReplicaDriver;

constexpr std::uint8_t kFromSample = wire::kTokenFromSample | wire::kSampleToken;

}  // namespace

TEST_CASE("a prompt's step is issued at once, and the next one before its token is back") {
  ReplicaDriver driver({});
  driver.start(1, 20, 5);
  const auto commands = driver.plan();
  REQUIRE_EQ(commands.size(), 2);
  CHECK_EQ(commands[0].step, 1);
  CHECK_EQ(commands[0].epoch, 7);
  REQUIRE_EQ(commands[0].admit.size(), 1);
  CHECK_EQ(commands[0].tokens.size(), 20);
  CHECK(commands[0].blocks == std::vector<std::uint32_t>{0, 1});
  CHECK_EQ(commands[0].flags[0], wire::kSampleToken);
  CHECK_EQ(commands[1].position[0], 20);
  CHECK_EQ(commands[1].flags[0], kFromSample);
  CHECK(commands[1].tokens == std::vector<std::int32_t>{-1});
  CHECK(commands[1].admit.empty());
}

TEST_CASE("no step is issued beyond max_tokens") {
  ReplicaDriver driver({});
  driver.start(1, 4, 2);
  const auto commands = driver.plan();
  REQUIRE_EQ(commands.size(), 2);  // the prompt gives token 1, one more step token 2
  REQUIRE(driver.finish(commands[0]).ok());
  CHECK(driver.plan().empty());
  REQUIRE(driver.finish(commands[1]).ok());
  CHECK_EQ(driver.ledger.counts().completed, 1);
  CHECK_EQ(driver.replica.blocks().num_free(), 64);
}

TEST_CASE("decodes come before prefill chunks, under the token budget") {
  ReplicaDriver driver({.step_tokens = 32});
  driver.start(1, 8, 100);
  driver.start(2, 8, 100);
  auto commands = driver.plan();
  REQUIRE_EQ(commands.size(), 2);
  driver.start(3, 100, 10);
  REQUIRE(driver.finish(commands[0]).ok());
  commands = driver.plan();
  REQUIRE_EQ(commands.size(), 1);
  // 2 decodes and 30 tokens' room: 100 tokens in 4 equal chunks.
  CHECK(commands[0].seq == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(commands[0].cu_tokens == std::vector<std::uint32_t>{0, 1, 2, 27});
  CHECK_EQ(commands[0].flags[2], 0);
}

TEST_CASE("more decodes than the budget take turns") {
  ReplicaDriver driver({.step_tokens = 4});
  std::vector<wire::StepCommand> in_flight;
  for (RequestId id = 1; id <= 6; ++id) {
    while (driver.replica.num_steps_in_flight() > 1) {
      REQUIRE(driver.finish(in_flight.front()).ok());
      in_flight.erase(in_flight.begin());
    }
    driver.start(id, 1, 90);
    for (auto& command : driver.plan())
      in_flight.push_back(std::move(command));
  }
  std::vector<int> steps(6, 0);
  for (int i = 0; i < 60; ++i) {
    REQUIRE(driver.finish(in_flight.front()).ok());
    in_flight.erase(in_flight.begin());
    for (auto& command : driver.plan()) {
      for (const std::uint32_t slot : command.seq)
        ++steps[slot];
      in_flight.push_back(std::move(command));
    }
  }
  CHECK_GE(*std::min_element(steps.begin(), steps.end()), 30);
}

TEST_CASE(
    "a scored prompt is chunked with the token after each chunk, and its last chunk samples") {
  wire::GenerationParams params;
  params.num_prompt_logprobs = 2;
  ReplicaDriver driver({.step_tokens = 16});
  driver.start(1, 40, 3, params);
  std::vector<wire::StepCommand> all;
  for (auto commands = driver.plan(); !commands.empty(); commands = driver.plan()) {
    for (auto& command : commands)
      all.push_back(std::move(command));
    if (all.size() > 2) break;
    REQUIRE(driver.finish(all[0]).ok());
  }
  REQUIRE_GE(all.size(), 3);
  CHECK_EQ(all[0].admit[0].num_prompt_logprobs, 2);
  CHECK_EQ(all[0].flags[0], wire::kScorePrompt);
  CHECK_EQ(all[0].next_token[0], FakeTokenizer::kA);
  CHECK_EQ(all[2].flags[0], wire::kScorePrompt | wire::kSampleToken);
  CHECK_EQ(all[2].next_token[0], -1);
  REQUIRE(driver.finish(all[1]).ok());
  REQUIRE(driver.finish(all[2]).ok());
  const auto outputs = driver.ledger.take_outputs();
  REQUIRE_EQ(outputs.size(), 1);
  CHECK_EQ(outputs[0].prompt_tokens.size(), 40);
  CHECK_FALSE(outputs[0].prompt_tokens[0].logprob.has_value());
  CHECK(outputs[0].prompt_tokens[39].logprob.has_value());
}

TEST_CASE("with max_tokens 0 the prompt is scored and nothing sampled") {
  wire::GenerationParams params;
  params.num_prompt_logprobs = 0;
  ReplicaDriver driver({});
  driver.start(1, 10, 0, params);
  const auto commands = driver.plan();
  REQUIRE_EQ(commands.size(), 1);
  CHECK_EQ(commands[0].tokens.size(), 9);  // the last token's row would score nothing
  CHECK_EQ(commands[0].next_token[0], FakeTokenizer::kA);
  REQUIRE(driver.finish(commands[0]).ok());
  const auto outputs = driver.ledger.take_outputs();
  REQUIRE_EQ(outputs.size(), 1);
  CHECK_EQ(outputs[0].prompt_tokens.size(), 10);
  CHECK(outputs[0].finish == wire::FinishReason::kLength);
}

TEST_CASE("a prompt is taken while less than a step of each stage would be computed before it") {
  ReplicaDriver driver({.pp_size = 2, .num_blocks = 1000, .step_tokens = 64});
  driver.start(1, 100, 1);
  LiveRequest& second = driver.add(2, 100, 1);
  CHECK(driver.replica.can_take(second));
  driver.place(second);
  LiveRequest& third = driver.add(3, 100, 1);
  CHECK_FALSE(driver.replica.can_take(third));
  CHECK(driver.replica.can_take(driver.add(4, 20, 1)));  // shorter ones go first
  driver.plan();
  CHECK(driver.replica.can_take(third));
}

TEST_CASE("sequences spread over the lanes, and each stays in its own") {
  ReplicaDriver driver({.pp_size = 3, .num_blocks = 1000});
  for (RequestId id = 1; id <= 6; ++id)
    driver.start(id, 10, 20);
  const auto commands = driver.plan();
  REQUIRE_EQ(commands.size(), 6);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    CHECK_EQ(commands[i].lane, i % 3);
    CHECK_EQ(commands[i].num_seqs(), 2);
    CHECK(commands[i].seq == commands[i % 3].seq);
  }
}

TEST_CASE("a short prompt's step has no more than a third of the budget in a long one's rows") {
  struct Case {
    std::uint32_t num_short;
    std::uint32_t of_long;  // rows of the long prompt in the step with the short one
    std::uint32_t of_short;
  };
  const Case cases[] = {
      {.num_short = 8, .of_long = 22, .of_short = 8},
      {.num_short = 30, .of_long = 22, .of_short = 30},
      {.num_short = 60, .of_long = 22, .of_short = 30},
  };
  for (const Case& test : cases) {
    CAPTURE(test.num_short);
    ReplicaDriver driver({.num_blocks = 100, .step_tokens = 64});
    driver.start(1, 1000, 10);
    std::vector<wire::StepCommand> commands = driver.plan();
    REQUIRE_EQ(commands.size(), 2);  // whole budgets: 1000 tokens in 16 equal chunks
    CHECK_EQ(commands[0].tokens.size(), 63);
    driver.start(2, test.num_short, 10);
    REQUIRE(driver.finish(commands[0]).ok());
    commands = driver.plan();
    REQUIRE_EQ(commands.size(), 1);
    REQUIRE_EQ(commands[0].num_seqs(), 2);
    CHECK_EQ(commands[0].cu_tokens[1], test.of_long);
    CHECK_EQ(commands[0].cu_tokens[2] - commands[0].cu_tokens[1], test.of_short);
  }
}

}  // namespace brigade::router
