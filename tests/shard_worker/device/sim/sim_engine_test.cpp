// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/device/sim/sim_engine.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <thread>

#include "common/base/strings.h"
#include "shard_worker/collectives/shared_memory.h"
#include "shard_worker/core/sequence_table.h"

namespace brigade::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

wire::Assign make_assign(std::uint32_t pp_stage, std::uint32_t pp_size, std::uint32_t tp_size) {
  wire::Assign assign{.epoch = 1, .model_path = "sim", .pp_stage = pp_stage};
  for (std::uint32_t s = 0; s < pp_size; ++s) {
    assign.stages.push_back({.layers = {s, s + 1}, .tp_size = tp_size});
  }
  assign.sim = {.base_us = 0, .us_per_token = 0, .us_per_context_token = 0, .load_ms = 0};
  return assign;
}

std::unique_ptr<Collective> attach(const std::string& name, int rank, int size) {
  auto group = attach_shared_memory(
      {.group_name = name, .epoch = 1, .rank = rank, .size = size, .slot_bytes = 4096},
      Clock::now() + seconds(20));
  REQUIRE(group.ok());
  return std::move(group).value();
}

/// Runs one step on a pipeline of `pp_size` stages of `tp_size` ranks, a thread a rank, activations
/// handed over by hand.
std::vector<ScoredToken> run_grid(const StepInputs& inputs, std::uint32_t pp_size, int tp_size) {
  std::vector<float> hidden;
  std::vector<ScoredToken> result;
  for (std::uint32_t stage = 0; stage < pp_size; ++stage) {
    const std::string name = str_cat("sim-test-", getpid(), '-', stage);
    std::vector<std::vector<float>> outs(static_cast<std::size_t>(tp_size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < tp_size; ++rank) {
      threads.emplace_back([&, rank] {
        const auto group = attach(name, rank, tp_size);
        const auto engine = make_sim_engine();
        CHECK(engine
                  ->load(make_assign(stage, pp_size, static_cast<std::uint32_t>(tp_size)),
                         [](float) {})
                  .ok());
        auto& out = outs[static_cast<std::size_t>(rank)];
        out = hidden;
        out.resize(static_cast<std::size_t>(inputs.num_tokens() * engine->hidden_size()));
        std::vector<ScoredToken> scored;
        CHECK(engine->run(inputs, *group, Clock::now() + seconds(20), out, scored).ok());
        if (rank == 0) result = scored;
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    hidden = outs.back();
  }
  return result;
}

wire::StepCommand prompt_command(SequenceTable& table, StepInputs& inputs) {
  wire::StepCommand command{
      .epoch = 1,
      .step = 1,
      .admit = {{.seq = 0, .num_logprobs = 2}, {.seq = 1, .num_prompt_logprobs = 0}},
      .seq = {0, 1},
      .position = {0, 0},
      .flags = {wire::kSampleToken, wire::kScorePrompt | wire::kSampleToken},
      .next_token = {-1, -1},
      .cu_tokens = {0, 3, 5},
      .tokens = {1000, 2000, 70000, 8, 9},
      .cu_blocks = {0, 1, 2},
      .blocks = {0, 1}};
  REQUIRE(table.apply(command, inputs).ok());
  return command;
}

TEST_CASE(
    "the same sequence gets the same tokens on any grid, from its last token and position alone") {
  SequenceTable table(
      {.epoch = 1, .max_seqs = 4, .max_step_tokens = 64, .num_kv_blocks = 8, .vocab_size = 100000});
  StepInputs inputs;
  prompt_command(table, inputs);
  for (const auto& [pp_size, tp_size] : {std::pair{1U, 1}, {1U, 2}, {3U, 1}, {2U, 3}}) {
    const std::vector<ScoredToken> scored = run_grid(inputs, pp_size, tp_size);
    REQUIRE(scored.size() == 3);
    CHECK(scored[0].token == sim_token(70000, 3));
    CHECK(scored[0].sampled);
    CHECK(scored[0].top_tokens.size() == 2);
    CHECK(scored[1].token == 9);
    CHECK_FALSE(scored[1].sampled);
    CHECK(scored[1].logprob <= 0);
    CHECK(scored[2].token == sim_token(9, 2));
    CHECK(std::isnan(scored[2].logprob));
  }
}

TEST_CASE("activations of other rows than the command's are noticed") {
  SequenceTable table(
      {.epoch = 1, .max_seqs = 4, .max_step_tokens = 64, .num_kv_blocks = 8, .vocab_size = 100000});
  StepInputs inputs;
  prompt_command(table, inputs);
  const auto engine = make_sim_engine();
  REQUIRE(engine->load(make_assign(1, 2, 1), [](float) {}).ok());
  std::vector<float> hidden(static_cast<std::size_t>(inputs.num_tokens() * engine->hidden_size()),
                            1.0F);
  std::vector<ScoredToken> scored;
  const auto group = attach(str_cat("sim-test-", getpid(), "-solo"), 0, 1);
  CHECK(engine->run(inputs, *group, Clock::now() + seconds(5), hidden, scored).code() ==
        StatusCode::kDataLoss);
}

TEST_CASE("tokens stay in the ordinary range, and a banned one is not drawn before its position") {
  std::int32_t token = 5;
  for (std::uint32_t position = 1; position < 1000; ++position) {
    token = sim_token(token, position);
    CHECK(token >= kSimFirstToken);
    CHECK(token < kSimFirstToken + kSimNumTokens);
  }
  SequenceTable table(
      {.epoch = 1, .max_seqs = 1, .max_step_tokens = 64, .num_kv_blocks = 8, .vocab_size = 100000});
  for (std::uint32_t until : {2U, 1U}) {
    StepInputs inputs;
    wire::StepCommand command{.epoch = 1,
                              .step = until == 2 ? 1U : 2U,
                              .seq = {0},
                              .position = {0},
                              .flags = {wire::kSampleToken},
                              .next_token = {-1},
                              .cu_tokens = {0, 1},
                              .tokens = {7},
                              .cu_blocks = {0, 1},
                              .blocks = {0}};
    if (until == 1) command.release = {0};
    command.admit = {
        {.seq = 0, .banned_until_position = until, .banned_tokens = {sim_token(7, 1)}}};
    REQUIRE(table.apply(command, inputs).ok());
    const std::vector<ScoredToken> scored = run_grid(inputs, 1, 1);
    CHECK(scored[0].token == sim_token(7, 1, until == 2 ? 1 : 0));
  }
}

TEST_CASE("step time follows the cost model, and senseless costs give a bounded time") {
  const wire::SimCost cost{.base_us = 100, .us_per_token = 10, .us_per_context_token = 1};
  CHECK(sim_step_time(cost, 0.5, 4, 20, 0, 1) == std::chrono::microseconds(130));
  const wire::SimCost jittery{
      .base_us = 100, .us_per_token = 0, .us_per_context_token = 0, .jitter = 0.5};
  for (std::uint64_t step = 0; step < 100; ++step) {
    CHECK(sim_step_time(jittery, 1, 1, 1, 3, step) >= std::chrono::microseconds(100));
    CHECK(sim_step_time(jittery, 1, 1, 1, 3, step) <= std::chrono::microseconds(150));
  }
  const auto of_stage = [&](std::uint32_t replica, std::uint32_t pp_stage) {
    return sim_step_time(jittery, 1, 1, 1, sim_seed(replica, pp_stage), 7);
  };
  CHECK(of_stage(0, 1) == of_stage(0, 1));
  CHECK(of_stage(0, 1) != of_stage(1, 1));
  CHECK(of_stage(0, 1) != of_stage(1, 0));
  CHECK(sim_step_time({.base_us = std::nan("")}, 1, 1, 1, 0, 0) == Duration::zero());
  CHECK(sim_step_time({.base_us = 1e300}, 1, 1, 1, 0, 0) == seconds(60));
  CHECK(sim_step_time({.base_us = -5}, 0, 1, 1, 0, 0) == Duration::zero());
}

TEST_CASE("a step that would take longer than its deadline ends at the deadline") {
  SequenceTable table(
      {.epoch = 1, .max_seqs = 4, .max_step_tokens = 64, .num_kv_blocks = 8, .vocab_size = 100000});
  StepInputs inputs;
  prompt_command(table, inputs);
  wire::Assign assign = make_assign(0, 1, 1);
  assign.sim.base_us = 30e6;
  const auto engine = make_sim_engine();
  REQUIRE(engine->load(assign, [](float) {}).ok());
  std::vector<float> hidden(static_cast<std::size_t>(inputs.num_tokens() * engine->hidden_size()));
  std::vector<ScoredToken> scored;
  const auto group = attach(str_cat("sim-test-", getpid(), "-solo"), 0, 1);
  const TimePoint start = Clock::now();
  CHECK(engine->run(inputs, *group, start + milliseconds(20), hidden, scored).code() ==
        StatusCode::kDeadlineExceeded);
  CHECK(Clock::now() - start < seconds(10));
}

TEST_CASE("loading takes its time once, tells its progress, and is kept for the same shard") {
  wire::Assign assign = make_assign(0, 2, 1);
  assign.sim.load_ms = 20;
  const auto engine = make_sim_engine();
  std::vector<float> fractions;
  REQUIRE(engine->load(assign, [&](float f) { fractions.push_back(f); }).ok());
  CHECK(fractions.size() == 10);
  CHECK(fractions.back() == doctest::Approx(1));
  fractions.clear();
  REQUIRE(engine->load(assign, [&](float f) { fractions.push_back(f); }).ok());
  CHECK(fractions.empty());
  CHECK(engine->max_kv_blocks(1 << 20) == 1024);
  CHECK(engine->kv_block_bytes() == 1024);
  CHECK_FALSE(engine->allocate_kv(std::uint64_t{1} << 40).ok());
}

}  // namespace
}  // namespace brigade::worker
