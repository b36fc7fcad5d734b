// SPDX-License-Identifier: Apache-2.0
#include "router/core/step_cost.h"

#include <doctest/doctest.h>

#include "common/base/random.h"

namespace brigade::router {
namespace {

std::uint32_t below(std::uint64_t counter, std::uint32_t bound) {
  return static_cast<std::uint32_t>(random_bits(/*seed=*/3, counter) % bound);
}

}  // namespace

TEST_CASE("the weight of a decode row is found from steps of mixed kinds, in spite of noise") {
  StepCost cost;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const std::uint32_t decodes = below(3 * i, 32);
    const std::uint32_t prefills = below(3 * i + 1, 2) * below(3 * i + 2, 200);
    cost.add(decodes, prefills, 500 + 60 * decodes + 30 * prefills + below(7 * i, 100));
  }
  CHECK(cost.decode_weight() == doctest::Approx(2).epsilon(0.1));
}

TEST_CASE("steps of one kind alone leave the weight as it was") {
  StepCost cost;
  for (int i = 0; i < 100; ++i)
    cost.add(8, 0, 900);
  CHECK_EQ(cost.decode_weight(), 1);
  for (int i = 0; i < 100; ++i)
    cost.add(8, 64, 900);
  CHECK_GE(cost.decode_weight(), 0.25);
  CHECK_LE(cost.decode_weight(), 4);
}

}  // namespace brigade::router
