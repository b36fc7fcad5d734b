// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/rope_table.h"

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::worker {

TEST_CASE("angles are position times theta^(-2i/d), divided where the model says so") {
  model::RopeSpec rope{.theta = 100};
  RopeTable plain(rope, 4, 3);
  const std::vector<std::int32_t> positions = {0, 7, 1'000'003};
  const kernels::RopeAngles angles = plain.compute(positions);
  REQUIRE(angles.cos.rows == 3);
  REQUIRE(angles.cos.cols == 2);
  for (std::int64_t i = 0; i < 3; ++i) {
    const double position = positions[static_cast<std::size_t>(i)];
    CHECK(angles.cos.row(i)[0] == static_cast<float>(std::cos(position)));
    CHECK(angles.sin.row(i)[0] == static_cast<float>(std::sin(position)));
    CHECK(angles.sin.row(i)[1] == doctest::Approx(std::sin(position / 10)).epsilon(1e-6));
  }
  rope.divisors = {1, 8};
  rope.magnitude = 1.5;
  RopeTable scaled(rope, 4, 3);
  CHECK(scaled.compute(positions).sin.row(1)[1] ==
        doctest::Approx(1.5 * std::sin(7.0 / 80)).epsilon(1e-6));
}

}  // namespace brigade::worker
