// SPDX-License-Identifier: Apache-2.0
#include "common/base/bounded_queue.h"

#include <doctest/doctest.h>

#include <thread>

namespace brigade {

TEST_CASE("a full queue refuses, a closed one drains") {
  BoundedQueue<int> queue(2);
  CHECK(queue.try_push(1));
  CHECK(queue.try_push(2));
  CHECK_FALSE(queue.try_push(3));
  queue.close();
  CHECK_FALSE(queue.try_push(4));
  CHECK(queue.pop_until(kNever) == 1);
  CHECK(queue.pop_until(kNever) == 2);
  CHECK_FALSE(queue.pop_until(kNever).has_value());
}

TEST_CASE("a wait ends at its deadline") {
  BoundedQueue<int> queue(1);
  const TimePoint start = Clock::now();
  CHECK_FALSE(queue.pop_until(start + std::chrono::milliseconds(20)).has_value());
  CHECK(Clock::now() - start >= std::chrono::milliseconds(20));
}

}  // namespace brigade
