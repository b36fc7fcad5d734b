// SPDX-License-Identifier: Apache-2.0
#include "router/core/admission.h"

#include <doctest/doctest.h>

namespace brigade::router {

using std::chrono::seconds;

TEST_CASE("each bound of the queue refuses by its name, and what is within all is let in") {
  RouterConfig config;
  config.max_queued_requests = 10;
  config.max_queued_tokens = 1000;
  config.max_queued_requests_per_tenant = 5;
  config.max_queued_tokens_per_tenant = 500;
  config.max_queue_delay = seconds(3);
  constexpr QueueLoad kRoom{
      .requests = 9, .tokens = 900, .tenant_requests = 4, .tenant_tokens = 400, .wait_s = 3};
  CHECK(check_queue_bounds(config, kRoom, 100, seconds(4)).ok());
  struct Case {
    const char* what;
    void (*spoil)(QueueLoad&);
  };
  const Case cases[] = {
      {"10 requests wait, at most 10", [](QueueLoad& load) { load.requests = 10; }},
      {"901 tokens wait, at most 1000", [](QueueLoad& load) { load.tokens = 901; }},
      {"5 requests of yours wait", [](QueueLoad& load) { load.tenant_requests = 5; }},
      {"401 tokens of yours wait", [](QueueLoad& load) { load.tenant_tokens = 401; }},
      {"wait for about 3.5 s, at most 3", [](QueueLoad& load) { load.wait_s = 3.5; }},
      {"wait for about 3 s, at most 2.5 while the queue stands",
       [](QueueLoad& load) { load.standing = {.requests = 4, .wait_s = 2.5}; }},
  };
  for (const Case& test : cases) {
    QueueLoad load = kRoom;
    test.spoil(load);
    const Status refused = check_queue_bounds(config, load, 100, seconds(4));
    CHECK(refused.code() == StatusCode::kResourceExhausted);
    CHECK_MESSAGE(refused.message().find(test.what) != std::string::npos, refused.message());
  }
  const Status late = check_queue_bounds(config, kRoom, 100, seconds(2));
  CHECK(late.message().find("past its deadline of 2") != std::string::npos);
  QueueLoad unknown = kRoom;
  unknown.wait_s.reset();
  CHECK(check_queue_bounds(config, unknown, 100, seconds(2)).ok());
}

TEST_CASE("a queue that stands may make a request wait for an eighth of what runs") {
  DrainRate rate;
  TimePoint now{seconds(100)};
  const Slots slots{.in_use = 64, .all = 64, .may_wait = 8};
  CHECK_FALSE(standing_bound(rate, slots, std::nullopt, now).has_value());
  CHECK_EQ(standing_bound(rate, slots, /*service_s=*/2, now)->wait_s, 0.25);
  for (int i = 0; i < 50; ++i) {
    now += std::chrono::milliseconds(100);
    rate.observe(2, 500, /*waiting=*/true, now);
  }
  // One is placed each 50 ms.
  const auto bound = standing_bound(rate, slots, /*service_s=*/2, now);
  CHECK_EQ(bound->wait_s, doctest::Approx(8 * 0.05).epsilon(0.05));
  CHECK_EQ(bound->requests, 8);
  // Within either of its parts a request is let in.
  QueueLoad load{.tenant_requests = 8, .wait_s = 0.6, .standing = bound};
  CHECK_FALSE(check_queue_bounds({}, load, 100, seconds(60)).ok());
  load.tenant_requests = 7;
  CHECK(check_queue_bounds({}, load, 100, seconds(60)).ok());
  load = {.tenant_requests = 8, .wait_s = 0.3, .standing = bound};
  CHECK(check_queue_bounds({}, load, 100, seconds(60)).ok());
}

TEST_CASE("before the rate is known a request waits as if all were like it") {
  // 32 are ahead of it, and 16 slots take one each every two seconds.
  CHECK_EQ(*expected_wait_s(3200, 100, 2, {.all = 16}), 4);
  CHECK_EQ(*expected_wait_s(0, 100, 2, {.all = 16}), 0);
  CHECK_FALSE(expected_wait_s(3200, 100, 2, {}).has_value());
}

TEST_CASE("an eighth of a replica's slots may always wait, at least 4 and at most 16") {
  CHECK_EQ(may_always_wait(1), 4);
  CHECK_EQ(may_always_wait(64), 8);
  CHECK_EQ(may_always_wait(256), 16);
}

TEST_CASE("Retry-After is the wait in whole seconds, between 1 and 60") {
  CHECK_EQ(retry_after_s(0.0), 1);
  CHECK_EQ(retry_after_s(1.2), 2);
  CHECK_EQ(retry_after_s(59.5), 60);
  CHECK_EQ(retry_after_s(1e12), 60);
  CHECK_EQ(retry_after_s(std::nullopt), 5);
}

}  // namespace brigade::router
