// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/collectives/solo.h"

#include <doctest/doctest.h>

#include <vector>

namespace brigade::worker {

TEST_CASE("a group of one keeps its data, gathers its own part, and is poisoned by an abort") {
  const auto solo = make_solo_collective();
  CHECK(solo->size() == 1);
  std::vector<float> data = {1, 2};
  std::vector<float> all(2);
  CHECK(solo->all_reduce(data, kNever).ok());
  CHECK(solo->gather(data, all, kNever).ok());
  CHECK(all == std::vector<float>{1, 2});
  CHECK(solo->broadcast(std::as_writable_bytes(std::span(data)), kNever).ok());
  CHECK(solo->agree(7, kNever).ok());
  solo->abort();
  CHECK(solo->all_reduce(data, kNever).code() == StatusCode::kCancelled);
  CHECK(solo->gather(data, all, kNever).code() == StatusCode::kCancelled);
}

}  // namespace brigade::worker
