// SPDX-License-Identifier: Apache-2.0
#include "router/core/replica.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

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
