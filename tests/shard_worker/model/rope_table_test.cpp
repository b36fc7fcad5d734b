// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/rope_table.h"

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::worker {

TEST_CASE("angles are position times theta^(-2i/d), divided where the model says so") {
  model::ModelSpec spec;
  spec.rotary_dim = 4;
  spec.rope_theta = 100;
  RopeTable plain(spec, 3);
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
  spec.rope_divisors = {1, 8};
  RopeTable scaled(spec, 3);
  CHECK(scaled.compute(positions).sin.row(1)[1] ==
        doctest::Approx(std::sin(7.0 / 80)).epsilon(1e-6));
}

}  // namespace brigade::worker
