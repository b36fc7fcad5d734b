// SPDX-License-Identifier: Apache-2.0
#include "router/actors/inbox.h"

#include <doctest/doctest.h>

#include <atomic>

#include "router/actors/tokenizer_pool.h"

namespace brigade::router {

TEST_CASE("an inbox wakes its actor once a batch and refuses what is over its bound") {
  int wakes = 0;
  Inbox<int> inbox(2, [&wakes] { ++wakes; });
  CHECK(inbox.push(1));
  CHECK_FALSE(inbox.full());
  CHECK(inbox.push(2));
  CHECK(inbox.full());
  CHECK_FALSE(inbox.push(3));
  inbox.push_always(4);
  CHECK(wakes == 1);
  std::vector<int> events;
  inbox.take(events);
  CHECK(events == std::vector<int>{1, 2, 4});
  CHECK(inbox.push(5));
  CHECK(wakes == 2);
}

TEST_CASE("the tokenizer pool runs what it took, and refuses when it is full") {
  std::atomic<int> done = 0;
  {
    TokenizerPool pool(2, 1000);
    for (int i = 0; i < 100; ++i)
      CHECK(pool.run([&done] { ++done; }));
    pool.close();
    CHECK_FALSE(pool.run([&done] { ++done; }));
  }
  CHECK(done == 100);
  TokenizerPool idle(0, 1);
  CHECK(idle.run([] {}));
  CHECK_FALSE(idle.run([] {}));
}

}  // namespace brigade::router
