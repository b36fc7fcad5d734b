// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/wire/messages.h"

/// What the sampler promises, in the plainest way and from the definitions alone: in double, whole
/// vocabulary, sort everything, then cut and draw.
namespace brigade::test {

/// In [-spread, spread).
[[nodiscard]] std::vector<float> random_logits(std::int64_t size, std::uint64_t seed,
                                               double spread = 8);

/// Probabilities of all tokens after penalties, biases, masks, temperature and cuts; empty when
/// nothing is allowed. `output` is the output so far.
[[nodiscard]] std::vector<double> plain_distribution(const std::vector<float>& logits,
                                                     const wire::SequenceAdmit& params,
                                                     const std::vector<std::int32_t>& output,
                                                     std::uint32_t position);

struct PlainResult {
  std::int32_t token = -1;  ///< -1: nothing is allowed
  double logprob = 0;       ///< of the raw distribution
};
[[nodiscard]] PlainResult plain_sample(const std::vector<float>& logits,
                                       const wire::SequenceAdmit& params,
                                       const std::vector<std::int32_t>& output,
                                       std::uint32_t position);

/// Parameters and controls at random, each control off half of the time.
struct RandomCase {
  RandomCase(std::uint64_t seed, std::int64_t vocab_size);
  wire::SequenceAdmit params;  ///< without the controls
  wire::SamplingControls controls;
  std::uint32_t position = 0;
};

}  // namespace brigade::test
