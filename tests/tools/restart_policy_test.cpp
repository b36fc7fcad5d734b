// SPDX-License-Identifier: Apache-2.0
#include "tools/restart_policy.h"

#include <doctest/doctest.h>

namespace brigade::tools {

TEST_CASE("the first restart is at once, then the wait doubles up to its bound") {
  RestartPolicy policy;
  TimePoint now{};
  policy.on_start(now);
  CHECK(policy.on_death(now) == now);
  Duration expected = RestartPolicy::kFirstDelay;
  for (int i = 0; i < 10; ++i) {
    CAPTURE(i);
    CHECK(policy.on_death(now) - now == std::min(expected, RestartPolicy::kMaxDelay));
    expected *= 2;
  }
}

TEST_CASE("a process that lived long enough is restarted at once again") {
  RestartPolicy policy;
  TimePoint now{};
  policy.on_start(now);
  CHECK(policy.on_death(now) == now);
  CHECK(policy.on_death(now) > now);
  now += std::chrono::minutes(5);
  policy.on_start(now);
  now += RestartPolicy::kStable;
  CHECK(policy.on_death(now) == now);
}

}  // namespace brigade::tools
