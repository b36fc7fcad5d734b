// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/router/core/support/replica_driver.h"

namespace brigade::router {
namespace {

using testing::FakeTokenizer;
using testing::ReplicaDriver;

}  // namespace

TEST_CASE("when KV runs out the youngest is preempted, and starts with more room the next time") {
  ReplicaDriver driver({.num_blocks = 5});
  driver.start(1, 15, 40);
  driver.start(2, 15, 40);
  std::vector<wire::StepCommand> in_flight;
  std::vector<LiveRequest*> preempted;
  for (int i = 0; i < 200 && preempted.empty(); ++i) {
    for (auto& command : driver.plan())
      in_flight.push_back(std::move(command));
    preempted = driver.replica.take_preempted();
    REQUIRE_FALSE(in_flight.empty());
    REQUIRE(driver.finish(in_flight.front()).ok());
    in_flight.erase(in_flight.begin());
  }
  REQUIRE_EQ(preempted.size(), 1);
  CHECK_EQ(preempted[0]->id, 2);
  CHECK_GT(preempted[0]->num_output(), 0);
  driver.ledger.unplace_preempted(*preempted[0]);
  CHECK_FALSE(driver.replica.can_take(*preempted[0]));
  // The older one goes on to its end with the blocks that come back; then the other one starts from
  // its tokens.
  while (driver.replica.num_requests() > 0) {
    for (auto& command : driver.plan())
      in_flight.push_back(std::move(command));
    REQUIRE_FALSE(in_flight.empty());
    REQUIRE(driver.finish(in_flight.front()).ok());
    in_flight.erase(in_flight.begin());
  }
  for (const auto& command : in_flight)
    REQUIRE(driver.finish(command).ok());
  REQUIRE(driver.replica.can_take(*preempted[0]));
  driver.place(*preempted[0]);
  const auto commands = driver.plan();
  CHECK_EQ(commands[0].tokens.size(), preempted[0]->tokens.size());
  CHECK_EQ(driver.replica.blocks().num_owned(), 4);  // all that 15 + 40 tokens can come to
}

TEST_CASE("a prompt that begins like an earlier one starts after the blocks they share") {
  ReplicaDriver driver({});
  driver.shares = true;
  LiveRequest& first = driver.start(1, 40, 1);
  REQUIRE(driver.finish(driver.plan()[0]).ok());
  CHECK(driver.ledger.find(1) == nullptr);
  CHECK_EQ(driver.replica.blocks().num_cached(), 2);
  LiveRequest& second = driver.add(2, 50, 1);
  second.chain.extend(second.tokens);
  CHECK_EQ(driver.replica.cached_prefix(second), 32);
  driver.place(second);
  const auto commands = driver.plan();
  REQUIRE_EQ(commands.size(), 1);
  CHECK_EQ(commands[0].position[0], 32);
  CHECK_EQ(commands[0].tokens.size(), 18);
  CHECK(commands[0].blocks == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK_EQ(second.cached_tokens, 32);
  (void)first;
}

TEST_CASE("of a prompt that is cached whole the last block is computed, for its last row") {
  ReplicaDriver driver({});
  driver.shares = true;
  driver.start(1, 48, 1);
  REQUIRE(driver.finish(driver.plan()[0]).ok());
  CHECK_EQ(driver.replica.blocks().num_cached(), 3);
  driver.start(2, 48, 1);
  const auto commands = driver.plan();
  CHECK_EQ(commands[0].position[0], 32);
  CHECK_EQ(commands[0].tokens.size(), 16);
}

TEST_CASE("a prompt to be scored is computed from its first token, and serves others") {
  wire::GenerationParams params;
  params.num_prompt_logprobs = 0;
  ReplicaDriver driver({});
  driver.shares = true;
  driver.start(1, 40, 1);
  REQUIRE(driver.finish(driver.plan()[0]).ok());
  driver.start(2, 64, 1, params);
  const auto commands = driver.plan();
  CHECK_EQ(commands[0].position[0], 0);
  CHECK_EQ(commands[0].tokens.size(), 64);
  REQUIRE(driver.finish(commands[0]).ok());
  // Blocks 0 and 1 of the first one, 2 and 3 of the second.
  LiveRequest& third = driver.add(3, 70, 1);
  third.chain.extend(third.tokens);
  CHECK_EQ(driver.replica.cached_prefix(third), 64);
}

TEST_CASE("output is cached as it fills blocks") {
  ReplicaDriver driver({});
  driver.shares = true;
  LiveRequest& first = driver.start(1, 10, 30);
  std::vector<wire::StepCommand> in_flight;
  while (driver.ledger.find(1) != nullptr) {
    for (auto& command : driver.plan())
      in_flight.push_back(std::move(command));
    REQUIRE(driver.finish(in_flight.front()).ok());
    in_flight.erase(in_flight.begin());
  }
  (void)first;
  // 10 + 30 tokens; the last is never computed.
  CHECK_EQ(driver.replica.blocks().num_cached(), 2);
  LiveRequest& second = driver.add(2, 41, 1);  // the driver samples the letter of its prompts
  second.chain.extend(second.tokens);
  CHECK_EQ(driver.replica.cached_prefix(second), 32);
}

TEST_CASE("whoever comes with the same prefix waits for the one that computes it") {
  ReplicaDriver driver({.step_tokens = 32});
  driver.shares = true;
  driver.start(1, 70, 2);
  auto commands = driver.plan();
  REQUIRE_EQ(commands.size(), 2);
  driver.start(2, 70, 2);
  CHECK(driver.plan().empty());
  REQUIRE(driver.finish(commands[0]).ok());
  const auto third = driver.plan();  // the last chunk; the other one comes in a later step
  CHECK(third[0].seq == std::vector<std::uint32_t>{0});
  REQUIRE(driver.finish(commands[1]).ok());
  const auto fourth = driver.plan();
  REQUIRE_EQ(fourth.size(), 1);
  CHECK(fourth[0].seq == std::vector<std::uint32_t>{0, 1});
  CHECK_EQ(fourth[0].position[1], 64);
  CHECK(fourth[0].blocks == std::vector<std::uint32_t>{0, 1, 2, 3, 5});
}

TEST_CASE("when the one that computes a prefix goes, one that waits for it computes the rest") {
  ReplicaDriver driver({.step_tokens = 32});
  driver.shares = true;
  LiveRequest& first = driver.start(1, 70, 2);
  auto commands = driver.plan();
  REQUIRE_EQ(commands.size(), 2);
  LiveRequest& second = driver.start(2, 70, 2);
  driver.start(3, 70, 2);
  CHECK_EQ(commands[0].tokens.size(), 24);  // of 70 in three chunks
  CHECK_EQ(commands[1].tokens.size(), 23);
  driver.cancel(first);
  // 47 of its tokens are in steps under way: two blocks.
  REQUIRE(driver.finish(commands[0]).ok());
  auto more = driver.plan();
  REQUIRE_EQ(more.size(), 1);
  CHECK(more[0].seq == std::vector<std::uint32_t>{1});
  CHECK_EQ(more[0].position[0], 32);
  driver.cancel(second);
  driver.replica.audit();
  REQUIRE(driver.finish(commands[1]).ok());
  more = driver.plan();
  REQUIRE_FALSE(more.empty());
  CHECK(more[0].seq == std::vector<std::uint32_t>{2});
}

TEST_CASE("choices of one prompt wait for the first, share its blocks and copy the last one") {
  for (const bool prefix_cache : {true, false}) {
    ReplicaDriver driver({.prefix_cache = prefix_cache});
    driver.shares = prefix_cache;
    driver.group = 9;
    LiveRequest& first = driver.start(1, 40, 5);
    LiveRequest& second = driver.start(2, 40, 5);
    driver.start(3, 40, 5);
    auto commands = driver.plan();
    REQUIRE_EQ(commands.size(), 2);
    CHECK(commands[0].seq == std::vector<std::uint32_t>{0});
    CHECK(commands[0].copy_from.empty());
    CHECK(commands[1].seq == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(commands[1].copy_from == std::vector<std::uint32_t>{2, 2});
    CHECK(commands[1].copy_to == std::vector<std::uint32_t>{3, 4});
    CHECK(commands[1].position == std::vector<std::uint32_t>{40, 39, 39});
    CHECK(commands[1].blocks == std::vector<std::uint32_t>{0, 1, 3, 0, 1, 4});
    CHECK_EQ(second.cached_tokens, 39);
    CHECK_EQ(driver.replica.blocks().num_owned(), 5);
    driver.cancel(first);
    driver.cancel(second);
    for (const auto& command : commands)
      REQUIRE(driver.finish(command).ok());
    CHECK_EQ(driver.replica.blocks().num_owned(), 4);  // of the third one, and the prompt's end
    driver.cancel(*driver.ledger.find(3));
    driver.replica.audit_idle();
    CHECK_EQ(driver.replica.blocks().num_cached(), prefix_cache ? 2 : 0);
  }
}

TEST_CASE("a prompt of whole blocks is forked with one token to compute too") {
  ReplicaDriver driver({.prefix_cache = false});
  driver.group = 9;
  driver.start(1, 32, 5);
  driver.start(2, 32, 5);
  const auto commands = driver.plan();
  CHECK_EQ(commands[1].position[1], 31);
  CHECK(commands[1].copy_from == std::vector<std::uint32_t>{1});
}

TEST_CASE("when the first choice goes before it has computed the prompt, the next one does") {
  ReplicaDriver driver({.step_tokens = 32});
  driver.group = 9;
  LiveRequest& first = driver.start(1, 70, 5);
  const auto commands = driver.plan();
  REQUIRE_EQ(commands.size(), 2);
  driver.start(2, 70, 5);
  driver.start(3, 70, 5);
  CHECK(driver.plan().empty());
  driver.cancel(first);
  for (const auto& command : commands)
    REQUIRE(driver.finish(command).ok());
  const auto more = driver.plan();
  REQUIRE_EQ(more.size(), 2);
  CHECK(more[0].seq == std::vector<std::uint32_t>{1});
  CHECK_EQ(more[0].position[0], 32);
}

TEST_CASE("without a prefix cache no block outlives its request") {
  ReplicaDriver driver({.prefix_cache = false});
  driver.start(1, 40, 1);
  REQUIRE(driver.finish(driver.plan()[0]).ok());
  CHECK_EQ(driver.replica.blocks().num_cached(), 0);
  driver.replica.audit_idle();
}

}  // namespace brigade::router
