// SPDX-License-Identifier: Apache-2.0
#include "router/core/replica.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/router/core/support/replica_driver.h"

namespace brigade::router {
namespace {

using testing::FakeTokenizer;
using testing::ReplicaDriver;

}  // namespace

TEST_CASE(
    "a step in flight is ignored for a sequence that has ended, and holds its blocks and slot") {
  ReplicaDriver driver({});
  driver.start(1, 4, 50);
  const auto commands = driver.plan();
  REQUIRE(driver.finish(commands[0], FakeTokenizer::kEnd).ok());
  CHECK_EQ(driver.ledger.counts().completed, 1);
  CHECK_EQ(driver.replica.num_requests(), 0);
  CHECK_EQ(driver.replica.blocks().num_owned(), 0);
  CHECK_EQ(driver.replica.blocks().num_in_flight(), 1);
  // Another one gets other blocks and another slot meanwhile.
  driver.start(2, 4, 50);
  const auto second = driver.plan();
  REQUIRE_EQ(second.size(), 1);
  CHECK_EQ(second[0].seq[0], 1);
  CHECK(second[0].blocks == std::vector<std::uint32_t>{1});
  CHECK(second[0].release.empty());
  REQUIRE(driver.finish(commands[1]).ok());
  CHECK_EQ(driver.replica.blocks().num_in_flight(), 0);
  // Its slot is released in the next command, and may be opened anew in the same one.
  driver.start(3, 4, 50);
  const auto third = driver.plan();
  REQUIRE_FALSE(third.empty());
  CHECK(third[0].release == std::vector<std::uint32_t>{0});
  REQUIRE_EQ(third[0].admit.size(), 1);
  CHECK_EQ(third[0].admit[0].seq, 0);
}

TEST_CASE("min_tokens bans end and stop tokens up to its position") {
  wire::GenerationParams params;
  params.min_tokens = 3;
  params.stop_token_ids = {30};
  ReplicaDriver driver({});
  driver.start(1, 5, 10, params);
  driver.start(2, 5, 10);
  const auto commands = driver.plan();
  REQUIRE_EQ(commands[0].admit.size(), 2);
  CHECK_EQ(commands[0].admit[0].banned_until_position, 8);
  CHECK(commands[0].admit[0].banned_tokens == std::vector<std::int32_t>{FakeTokenizer::kEnd, 30});
  CHECK(commands[0].admit[1].banned_tokens.empty());
}

TEST_CASE(
    "a request is taken only when blocks for its prompt and one token are free, with some to "
    "spare") {
  ReplicaDriver driver({.num_blocks = 10});
  LiveRequest& large = driver.add(1, 159, 1);
  LiveRequest& too_large = driver.add(2, 100, 62);
  CHECK(driver.replica.can_take(large));
  CHECK(driver.replica.can_ever_hold(large));
  CHECK_FALSE(driver.replica.can_ever_hold(too_large));
  LiveRequest& first = driver.add(3, 80, 1);
  driver.place(first);
  CHECK_FALSE(driver.replica.can_take(large));
}

TEST_CASE("a result that is not the one owed is refused and changes nothing") {
  ReplicaDriver driver({});
  driver.start(1, 4, 10);
  const auto commands = driver.plan();
  const wire::StepResult good = ReplicaDriver::result_of(commands[0]);
  const auto spoilt = [&good](auto spoil) {
    wire::StepResult bad = good;
    spoil(bad);
    return bad;
  };
  const std::vector<wire::StepResult> results = {
      spoilt([](auto& r) { r.epoch = 6; }),
      spoilt([](auto& r) { r.step = 2; }),
      spoilt([](auto& r) { r.lane = 1; }),
      spoilt([](auto& r) { ++r.plan_hash; }),
      spoilt([](auto& r) { r.seq[0] = 5; }),
      spoilt([](auto& r) { r.position[0] = 5; }),
      spoilt([](auto& r) { r.token[0] = FakeTokenizer::kVocabSize; }),
      spoilt([](auto& r) { r.token[0] = -1; }),
      spoilt([](auto& r) { r.sampled[0] = 0; }),
      spoilt([](auto& r) { r.logprob.clear(); }),
      spoilt([](auto& r) {
        r.cu_top = {0, 3};
      }),
      spoilt([](auto& r) { r.cu_top.clear(); }),
      spoilt([](auto& r) {
        r.seq.clear();
        r.position.clear();
        r.token.clear();
        r.sampled.clear();
        r.logprob.clear();
        r.cu_top = {0};
      }),
  };
  for (const wire::StepResult& result : results) {
    CHECK_FALSE(driver.replica.on_result(result, driver.now, driver).ok());
    driver.replica.audit();
  }
  CHECK(driver.ledger.take_outputs().empty());
  CHECK(driver.replica.on_result(good, driver.now, driver).ok());
}

TEST_CASE("a cancelled request's slot without a step in flight is free at once") {
  ReplicaDriver driver({.max_seqs = 1});
  LiveRequest& first = driver.start(1, 10, 20);
  driver.cancel(first);
  CHECK_EQ(driver.replica.blocks().num_free(), 64);
  driver.start(2, 10, 20);
  const auto commands = driver.plan();
  CHECK(commands[0].release.empty());  // the first was never sent
}

TEST_CASE("ranks get the controls of a request that has some, with the tokens these depend on") {
  ReplicaDriver plain_driver({});
  plain_driver.start(1, 4, 9);
  CHECK(plain_driver.plan()[0].admit[0].controls == nullptr);

  ReplicaDriver driver({});
  wire::GenerationParams params{.repetition_penalty = 1.5F, .logit_bias = {{3, 1}}};
  LiveRequest& request = driver.add(2, 4, 9, params);
  request.tokens = {7, 5, 7, 6, 20, 20};  // moved from elsewhere with two tokens of output
  for (int i = 0; i < 2; ++i)
    request.stream->push(20);
  request.bad_words = {{1, 2}};
  driver.place(request);
  const auto command = driver.plan().at(0);
  const wire::SamplingControls& controls = *command.admit[0].controls;
  CHECK(controls.repetition_penalty == 1.5F);
  CHECK(controls.bias.size() == 1);
  CHECK(controls.bad_words == std::vector<std::vector<std::int32_t>>{{1, 2}});
  CHECK(controls.prompt_tokens == std::vector<std::int32_t>{5, 6, 7});
  CHECK(controls.output_tokens == std::vector<std::int32_t>{20, 20});

  wire::GenerationParams masked{.allowed_token_ids = {4}};
  ReplicaDriver other({});
  other.start(3, 4, 9, masked);
  const wire::SamplingControls plain = *other.plan()[0].admit[0].controls;
  CHECK(plain.allowed_tokens == std::vector<std::int32_t>{4});
  CHECK(plain.prompt_tokens.empty());
  CHECK(plain.output_tokens.empty());
}

TEST_CASE(
    "requests whose controls together are too much for a message start one step after another") {
  ReplicaDriver driver({.num_blocks = 4096, .step_tokens = 64});
  wire::GenerationParams params;
  params.allowed_token_ids.assign(16384, 3);
  for (RequestId id = 1; id <= 40; ++id)
    driver.start(id, 1, 9, params);
  std::size_t most = 0;
  std::size_t admitted = 0;
  for (int step = 0; step < 10 && admitted < 40; ++step) {
    for (const wire::StepCommand& command : driver.plan()) {
      std::size_t tokens = 0;
      for (const wire::SequenceAdmit& admit : command.admit)
        tokens += admit.controls->allowed_tokens.size();
      most = std::max(most, tokens);
      admitted += command.admit.size();
      REQUIRE(driver.finish(command).ok());
    }
  }
  CHECK_EQ(admitted, 40);
  CHECK_LE(most, std::size_t{1} << 18);
}

TEST_CASE("a fault of the sampler ends its request alone") {
  ReplicaDriver driver({});
  driver.start(1, 4, 9);
  driver.start(2, 4, 9);
  for (const std::uint8_t fault : {wire::kNothingAllowed, wire::kLogitsNotFinite}) {
    const auto commands = driver.plan();
    REQUIRE_FALSE(commands.empty());
    wire::StepResult result = ReplicaDriver::result_of(commands[0]);
    result.sampled[0] |= fault;
    REQUIRE(driver.replica.on_result(result, driver.now, driver).ok());
    for (std::size_t i = 1; i < commands.size(); ++i)
      REQUIRE(driver.finish(commands[i]).ok());
    driver.replica.audit();
  }
  CHECK_EQ(driver.ledger.counts().failed, 2);
  const auto outputs = driver.ledger.take_outputs();
  CHECK(std::count_if(outputs.begin(), outputs.end(), [](const Output& output) {
          return output.status.code() == StatusCode::kInvalidArgument &&
                 output.status.message().find("allowed_token_ids") != std::string::npos;
        }) == 1);
  CHECK(outputs.back().status.code() == StatusCode::kInternal);
}

}  // namespace brigade::router
