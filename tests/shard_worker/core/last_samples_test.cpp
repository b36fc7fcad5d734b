// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/core/last_samples.h"

#include <doctest/doctest.h>

namespace brigade::worker {
namespace {

StepInputs pending_inputs(std::uint32_t seq, std::uint64_t step) {
  StepInputs inputs;
  inputs.tokens = {-1};
  inputs.positions = {17};
  inputs.pending_tokens = {{.row = 0, .seq = seq, .step = step}};
  return inputs;
}

Status record(LastSamples& samples, std::uint64_t step, std::vector<std::uint32_t> seqs,
              std::vector<std::int32_t> tokens) {
  return samples.record(step, seqs, tokens);
}

TEST_CASE("a pending token becomes the sample drawn by its step") {
  LastSamples samples(/*max_seqs=*/4, /*vocab_size=*/100);
  StepInputs inputs = pending_inputs(2, 5);
  CHECK(LastSamples::needed_step(inputs) == 5);
  REQUIRE(record(samples, 5, {1, 2}, {8, 42}).ok());
  REQUIRE(samples.resolve(inputs).ok());
  CHECK(inputs.tokens[0] == 42);
}

TEST_CASE("a sample of another step or slot is never used") {
  LastSamples samples(/*max_seqs=*/4, /*vocab_size=*/100);
  REQUIRE(record(samples, 5, {2}, {42}).ok());
  StepInputs other_step = pending_inputs(2, 6);
  CHECK(samples.resolve(other_step).code() == StatusCode::kDataLoss);
  CHECK(other_step.tokens[0] == -1);
  StepInputs other_slot = pending_inputs(3, 5);
  CHECK(samples.resolve(other_slot).code() == StatusCode::kDataLoss);
}

TEST_CASE("the newest sample of a slot replaces the one before") {
  LastSamples samples(/*max_seqs=*/1, /*vocab_size=*/100);
  REQUIRE(record(samples, 1, {0}, {1}).ok());
  REQUIRE(record(samples, 2, {0}, {2}).ok());
  StepInputs inputs = pending_inputs(0, 2);
  REQUIRE(samples.resolve(inputs).ok());
  CHECK(inputs.tokens[0] == 2);
}

TEST_CASE("samples for slots or tokens that do not exist, or of unequal lengths, are refused") {
  LastSamples samples(/*max_seqs=*/2, /*vocab_size=*/100);
  CHECK(record(samples, 1, {2}, {0}).code() == StatusCode::kDataLoss);
  CHECK(record(samples, 1, {0}, {100}).code() == StatusCode::kDataLoss);
  CHECK(record(samples, 1, {0}, {-1}).code() == StatusCode::kDataLoss);
  CHECK(record(samples, 1, {0, 1}, {1}).code() == StatusCode::kDataLoss);
}

TEST_CASE("a step without pending tokens needs no samples") {
  CHECK_FALSE(LastSamples::needed_step(StepInputs{}).has_value());
}

}  // namespace
}  // namespace brigade::worker
