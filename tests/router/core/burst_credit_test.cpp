// SPDX-License-Identifier: Apache-2.0
#include "router/core/burst_credit.h"

#include <doctest/doctest.h>

namespace brigade::router {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("an overload lasts from the first refusal until no one has waited for long enough") {
  BurstCredit credit(seconds(3));
  TimePoint now{seconds(100)};
  credit.observe(/*waiting=*/true, now);
  now += seconds(60);
  CHECK_FALSE(credit.is_overload(now));  // however long they wait
  credit.exhaust(now);
  CHECK(credit.is_overload(now));
  // A moment without a queue is worth three with one, and no end of it.
  now += seconds(9);
  credit.observe(false, now);
  now += milliseconds(500);
  CHECK(credit.is_overload(now));
  credit.observe(true, now);
  now += milliseconds(900);
  credit.observe(false, now);
  CHECK(credit.is_overload(now + milliseconds(799)));
  CHECK_FALSE(credit.is_overload(now + milliseconds(800)));
  credit.observe(true, now + milliseconds(800));
  CHECK_FALSE(credit.is_overload(now + seconds(60)));
}

TEST_CASE("without a calm to wait for only what is refused by its length is refused") {
  BurstCredit credit(seconds(0));
  credit.exhaust(TimePoint(seconds(1)));
  CHECK_FALSE(credit.is_overload(TimePoint(seconds(1))));
}

}  // namespace brigade::router
