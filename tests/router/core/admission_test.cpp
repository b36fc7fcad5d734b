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

TEST_CASE("Retry-After is the wait in whole seconds, between 1 and 60") {
  CHECK_EQ(retry_after_s(0.0), 1);
  CHECK_EQ(retry_after_s(1.2), 2);
  CHECK_EQ(retry_after_s(59.5), 60);
  CHECK_EQ(retry_after_s(1e12), 60);
  CHECK_EQ(retry_after_s(std::nullopt), 5);
}

}  // namespace brigade::router
