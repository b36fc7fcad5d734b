// SPDX-License-Identifier: Apache-2.0
#include "common/net/outbox.h"

#include <doctest/doctest.h>

#include <memory>
#include <thread>

#include "common/net/poller.h"

namespace brigade::net {

TEST_CASE("an outbox refuses what is over its bound and keeps what it took") {
  Outbox<int> outbox(3);
  CHECK(outbox.push(1));
  std::vector<int> many = {2, 3, 4};
  CHECK_FALSE(outbox.push_all(many));
  CHECK(many.size() == 3);
  many.pop_back();
  CHECK(outbox.push_all(many));
  CHECK_FALSE(outbox.push(5));
  std::vector<int> taken;
  outbox.take(taken);
  CHECK(taken == std::vector<int>{1, 2, 3});
  outbox.close();
  CHECK_FALSE(outbox.push(6));
}

TEST_CASE("no wake is lost between threads") {
  Outbox<int> outbox(100000);
  constexpr int kItems = 20000;
  std::thread sender([&] {
    for (int i = 0; i < kItems; ++i)
      REQUIRE(outbox.push(i));
  });
  Poller poller;
  poller.add_fd(outbox.fd());
  int next = 0;
  std::vector<int> taken;
  while (next < kItems) {
    REQUIRE(poller.wait(Clock::now() + std::chrono::seconds(10)).value());
    outbox.take(taken);
    for (const int item : taken)
      REQUIRE(item == next++);
  }
  sender.join();
}

TEST_CASE("a poller comes back at its deadline") {
  Outbox<int> outbox(1);
  Poller poller;
  poller.add_fd(outbox.fd());
  const TimePoint start = Clock::now();
  CHECK_FALSE(poller.wait(start + std::chrono::milliseconds(20)).value());
  CHECK(Clock::now() >= start + std::chrono::milliseconds(20));
}

}  // namespace brigade::net
