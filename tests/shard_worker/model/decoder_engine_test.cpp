// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/decoder_engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "shard_worker/collectives/solo.h"
#include "tests/support/engine_grid.h"
#include "tests/support/prompt_logits.h"
#include "tests/support/tiny_model.h"

namespace brigade::worker {
namespace {

using test::EngineGrid;
using test::GridOptions;
using test::Piece;
using test::TempFile;
using test::TinyModel;

using test::largest_difference;
using test::prompt_logits;
using test::PromptLogits;

/// Of the tiny model's vocabulary.
std::vector<std::int32_t> some_tokens(std::size_t count, std::uint64_t seed) {
  return test::some_tokens(count, seed, TinyModel{}.vocab_size);
}

wire::Assign assign_for(const std::string& path) {
  wire::Assign assign{.epoch = 1, .model_path = path};
  assign.stages = {{.layers = {0, 4}, .tp_size = 1}};
  return assign;
}

std::unique_ptr<DecoderEngine> reference_engine() {
  return std::make_unique<DecoderEngine>(
      [](kernels::ActivationMode mode) { return kernels::make_reference_ops(mode); });
}

}  // namespace

TEST_CASE(
    "with the reference ops every grid gives the logits of one rank, and stages change no bit") {
  const TempFile file(tiny_model_builder(TinyModel{.tied = false}).build());
  const auto grid = [&](std::uint32_t tp, std::uint32_t pp) {
    return EngineGrid({.model_path = file.path(),
                       .tp_size = tp,
                       .pp_size = pp,
                       .activations = wire::ActivationMode::kFloat,
                       .kv_type = wire::KvType::kF32,
                       .reference_ops = true});
  };
  const auto tokens = some_tokens(37, 5);
  EngineGrid single = grid(1, 1);
  const PromptLogits truth = prompt_logits(single, tokens, tokens.size());
  CHECK(truth.size() == tokens.size());
  for (std::uint32_t tp : {1U, 2U, 3U}) {
    EngineGrid whole = grid(tp, 1);
    const PromptLogits expected = prompt_logits(whole, tokens, tokens.size());
    CHECK(largest_difference(expected, truth) < 1e-4F);
    for (std::uint32_t pp : {2U, 4U}) {
      EngineGrid staged = grid(tp, pp);
      CHECK(prompt_logits(staged, tokens, 7) == expected);
      CHECK(prompt_logits(staged, tokens, 16, 5) == expected);
    }
  }
}

TEST_CASE(
    "the CPU ops are at the reference's logits for every type a file can hold, on every grid") {
  struct Case {
    model::TensorType type;
    wire::ActivationMode activations;
    float bound;  ///< on logits of about unit size: f32 sums; int8 sums may round at a tie the
                  ///< other way
  };
  constexpr auto kFloat = wire::ActivationMode::kFloat;
  const std::vector<Case> cases = {{model::TensorType::kF32, kFloat, 2e-5F},
                                   {model::TensorType::kF16, kFloat, 2e-5F},
                                   {model::TensorType::kBF16, kFloat, 2e-5F},
                                   {model::TensorType::kQ8_0, kFloat, 2e-5F},
                                   {model::TensorType::kQ4_1, kFloat, 2e-5F},
                                   {model::TensorType::kQ8_0, wire::ActivationMode::kInt8, 0.05F},
                                   {model::TensorType::kQ4_1, wire::ActivationMode::kInt8, 0.05F}};
  for (const Case& c : cases) {
    // Cuts of quantised columns need whole blocks of 32: two heads of 16 a KV head.
    const TempFile file(tiny_model_builder(TinyModel{.weights = c.type, .tied = false}).build());
    const auto tokens = some_tokens(37, 5);
    for (std::uint32_t tp : {1U, 2U, 3U}) {
      GridOptions options{.model_path = file.path(),
                          .tp_size = tp,
                          .activations = c.activations,
                          .kv_type = wire::KvType::kF32};
      EngineGrid fast(options);
      options.reference_ops = true;
      EngineGrid plain(options);
      const PromptLogits expected = prompt_logits(fast, tokens, tokens.size());
      const float difference = largest_difference(expected, prompt_logits(plain, tokens, 37));
      CHECK_MESSAGE(difference < c.bound, model::to_string(c.type) << " at tp " << tp);
      options.reference_ops = false;
      options.pp_size = 3;
      EngineGrid staged(options);
      CHECK(prompt_logits(staged, tokens, 5, 16) == expected);
    }
  }
}

TEST_CASE("prompt tokens are scored to the same bit with their logits in memory and without") {
  const TempFile file(
      tiny_model_builder(TinyModel{.weights = model::TensorType::kQ4_1, .tied = false}).build());
  const auto tokens = some_tokens(200, 5);
  const auto score = [&](EngineGrid& grid, std::int32_t num_logprobs, std::size_t chunk) {
    grid.set_params({.num_prompt_logprobs = num_logprobs});
    std::vector<float> logprobs;
    for (std::size_t at = 0; at + 1 < tokens.size(); at += chunk) {
      const std::size_t end = std::min(at + chunk, tokens.size() - 1);
      const auto scored = grid.step({{.seq = 0,
                                      .tokens = {tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                                 tokens.begin() + static_cast<std::ptrdiff_t>(end)},
                                      .flags = wire::kScorePrompt,
                                      .next_token = tokens[end]}});
      for (const ScoredToken& token : scored) {
        CHECK(token.token == tokens[logprobs.size() + 1]);
        CHECK(token.top_tokens.size() == static_cast<std::size_t>(num_logprobs));
        logprobs.push_back(token.logprob);
      }
    }
    grid.release(0);
    CHECK(logprobs.size() == tokens.size() - 1);
    return logprobs;
  };
  std::vector<float> one_rank;
  for (std::uint32_t tp : {1U, 2U, 3U}) {
    EngineGrid grid({.model_path = file.path(), .tp_size = tp});
    const std::vector<float> logprobs = score(grid, 0, 512);
    CHECK(score(grid, 0, 33) == logprobs);
    CHECK(score(grid, 5, 512) == logprobs);
    if (tp == 1) one_rank = logprobs;
    for (std::size_t i = 0; i < logprobs.size(); ++i)
      CHECK(logprobs[i] == doctest::Approx(one_rank[i]).epsilon(0.02));
    double sum = 0;
    grid.observe_logits([&](const ScoreRow& row, std::span<const float> logits) {
      for (const float logit : logits)
        sum += std::exp(static_cast<double>(logit));
      const double logprob = logits[static_cast<std::size_t>(row.target)] - std::log(sum);
      CHECK(logprob == doctest::Approx(logprobs[row.position - 1]).epsilon(1e-6));
      sum = 0;
    });
    CHECK(score(grid, 0, 512) == logprobs);
  }
}

TEST_CASE("greedy decoding goes on from what it sampled") {
  const TempFile file(tiny_model_builder(TinyModel{}).build());
  EngineGrid grid({.model_path = file.path(), .tp_size = 2, .pp_size = 2, .reference_ops = true});
  std::vector<std::int32_t> fed = some_tokens(20, 1);
  auto scored = grid.step({{.seq = 3, .tokens = fed, .flags = wire::kSampleToken}});
  for (int i = 0; i < 5; ++i) {
    REQUIRE(scored.size() == 1);
    CHECK(scored[0].sampled);
    CHECK(scored[0].seq == 3);
    CHECK(scored[0].position == fed.size());
    fed.push_back(scored[0].token);
    scored = grid.step({{.seq = 3, .tokens = {fed.back()}, .flags = wire::kSampleToken}});
  }
  grid.release(3);
  // The same tokens as one prompt: the next one is the same.
  const auto again = grid.step({{.seq = 4, .tokens = fed, .flags = wire::kSampleToken}});
  CHECK(again[0].token == scored[0].token);
}

TEST_CASE("a fork of a prompt has the logits of the prompt, to the bit, on every grid") {
  const TempFile file(tiny_model_builder(TinyModel{}).build());
  for (const bool reference : {true, false}) {
    for (const std::uint32_t size : {1U, 2U}) {
      EngineGrid grid({.model_path = file.path(),
                       .tp_size = size,
                       .pp_size = size,
                       .reference_ops = reference});
      std::map<std::uint32_t, std::vector<float>> rows;  // by sequence, of position 38
      grid.observe_logits([&](const ScoreRow& row, std::span<const float> logits) {
        if (row.position == 38) rows[row.seq] = {logits.begin(), logits.end()};
      });
      const std::vector<std::int32_t> prompt = some_tokens(38, 1);
      grid.step({{.seq = 0, .tokens = prompt, .flags = wire::kSampleToken}});
      // What the first one writes behind the prompt does not matter.
      grid.step({{.seq = 0, .tokens = {7, 8, 9}, .flags = wire::kSampleToken}});
      for (const std::uint32_t seq : {1U, 2U})
        grid.fork(0, seq, 37);
      grid.step({{.seq = 0, .tokens = {3}, .flags = wire::kSampleToken},
                 {.seq = 1, .tokens = {prompt.back()}, .flags = wire::kSampleToken},
                 {.seq = 2, .tokens = {prompt.back()}, .flags = wire::kSampleToken}});
      REQUIRE(rows.size() == 3);
      CHECK(rows[1] == rows[0]);
      CHECK(rows[2] == rows[0]);
    }
  }
}

TEST_CASE("weights are kept for the same shard and read anew for another") {
  const TempFile file(tiny_model_builder(TinyModel{}).build());
  const auto engine = reference_engine();
  int calls = 0;
  const auto count = [&](float) { ++calls; };
  wire::Assign assign = assign_for(file.path());
  REQUIRE(engine->load(assign, count).ok());
  const int first = calls;
  CHECK(first > 4);
  REQUIRE(engine->load(assign, count).ok());
  CHECK(calls == first + 1);  // only the final 1.0
  assign.max_step_tokens = 32;
  assign.kv_type = wire::KvType::kF32;
  REQUIRE(engine->load(assign, count).ok());
  CHECK(calls == first + 2);
  assign.activations = wire::ActivationMode::kFloat;
  REQUIRE(engine->load(assign, count).ok());
  CHECK(calls > 2 * first);
  const std::uint64_t all = engine->weight_bytes();
  assign.stages = {{.layers = {0, 2}, .tp_size = 1}, {.layers = {2, 4}, .tp_size = 1}};
  REQUIRE(engine->load(assign, count).ok());
  CHECK(engine->weight_bytes() < all);
}

TEST_CASE("the memory bound leaves room for weights, scratch and whole blocks") {
  const TempFile file(tiny_model_builder(TinyModel{}).build());
  const auto engine = reference_engine();
  CHECK(engine->max_kv_blocks(1 << 30) == 0);
  REQUIRE(engine->load(assign_for(file.path()), [](float) {}).ok());
  CHECK(engine->max_kv_blocks(engine->weight_bytes()) == 0);
  // 4 layers, 3 heads of 16, 16 tokens, keys and values of 2 bytes
  constexpr std::uint64_t kBlockBytes = 4 * 3 * 16 * 16 * 2 * 2;
  const std::uint64_t blocks = engine->max_kv_blocks(1 << 30);
  CHECK(engine->max_kv_blocks((1 << 30) + kBlockBytes) == blocks + 1);
  CHECK(engine->kv_block_bytes() == kBlockBytes);
  const Status status = engine->allocate_kv(kMaxKvBlocks);  // 1.6 TB
  CHECK(status.code() == StatusCode::kResourceExhausted);
  CHECK_MESSAGE(status.message().find("lower --kv-memory") != std::string::npos, status.message());
}

TEST_CASE("an assignment that cannot be is refused with what is wrong") {
  const TempFile file(tiny_model_builder(TinyModel{}).build());
  const auto engine = reference_engine();
  const auto refused = [&](const wire::Assign& assign, std::string_view part) {
    const Status status = engine->load(assign, [](float) {});
    CHECK_FALSE(status.ok());
    CHECK_MESSAGE(status.message().find(part) != std::string::npos, status.message());
  };
  const wire::Assign good = assign_for(file.path());
  wire::Assign bad = good;
  bad.model_path = "/nonexistent.gguf";
  refused(bad, "/nonexistent.gguf");
  bad = good;
  bad.model_digest = std::string(64, '0');
  refused(bad, "another file");
  bad = good;
  bad.pp_stage = 1;
  refused(bad, "stage 1 of 1");
  bad = good;
  bad.tp_rank = 1;
  refused(bad, "rank 1 of 1");
  bad = good;
  bad.stages[0].tp_size = 4;
  refused(bad, "tp 4 does not fit");
  bad = good;
  bad.stages[0].layers = {0, 3};
  refused(bad, "end at layer 3 of 4");
  bad = good;
  bad.stages = {{.layers = {0, 2}, .tp_size = 1}, {.layers = {3, 4}, .tp_size = 1}};
  refused(bad, "layer 2 is the next");
  bad = good;
  bad.stages.clear();
  refused(bad, "stage 0 of 0");
  bad = good;
  bad.max_step_tokens = 0;
  refused(bad, "0 tokens a step");
  CHECK(engine->weight_bytes() == 0);
}

TEST_CASE("steps before their time, tokens outside the vocabulary and aborts are errors") {
  const TempFile file(tiny_model_builder(TinyModel{}).build());
  const auto engine = reference_engine();
  const auto solo = make_solo_collective();
  std::vector<float> hidden(96);
  std::vector<ScoredToken> scored;
  StepInputs inputs;
  inputs.tokens = {-1};
  inputs.positions = {0};
  inputs.slot_mapping = {0};
  inputs.cu_seqlens_q = {0, 1};
  inputs.context_lens = {1};
  inputs.cu_blocks = {0, 1};
  inputs.block_tables = {0};
  const auto run = [&] { return engine->run(inputs, *solo, kNever, hidden, scored); };
  CHECK(run().code() == StatusCode::kFailedPrecondition);
  CHECK(engine->allocate_kv(4).code() == StatusCode::kFailedPrecondition);
  REQUIRE(engine->load(assign_for(file.path()), [](float) {}).ok());
  CHECK(run().code() == StatusCode::kFailedPrecondition);
  CHECK_FALSE(engine->allocate_kv(0).ok());
  CHECK_FALSE(engine->allocate_kv(1ULL << 40U).ok());
  REQUIRE(engine->allocate_kv(4).ok());
  CHECK(run().code() == StatusCode::kDataLoss);
  inputs.tokens = {5};
  CHECK(run().ok());
  solo->abort();
  CHECK(run().code() == StatusCode::kCancelled);
}

}  // namespace brigade::worker
