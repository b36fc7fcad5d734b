// SPDX-License-Identifier: Apache-2.0
#include "router/core/fair_queue.h"

#include <doctest/doctest.h>

#include <set>

#include "common/base/random.h"

namespace brigade::router {
namespace {

using std::chrono::seconds;

constexpr TimePoint kStart{seconds(100)};

QueueItem item_of(RequestId id, const std::string& tenant, std::uint64_t num_prompt,
                  TimePoint since = kStart) {
  return {.id = id,
          .order = id,
          .tenant = tenant,
          .num_prompt = num_prompt,
          .cost = num_prompt + 10,
          .since = since};
}

bool any(const QueueItem& /*item*/) {
  return true;
}

std::string pop_tenants(FairQueue& queue, int count) {
  std::string tenants;
  for (int i = 0; i < count; ++i)
    tenants += queue.pop(kStart, any)->tenant;
  return tenants;
}

}  // namespace

TEST_CASE("tenants share by tokens, not by requests") {
  FairQueue queue({1000}, seconds(60));
  for (RequestId id = 0; id < 30; ++id) {
    queue.push(item_of(3 * id, "a", 90));
    queue.push(item_of(3 * id + 1, "b", 40));
    queue.push(item_of(3 * id + 2, "b", 40));
  }
  // 100 tokens of one to two times 50 of the other.
  const std::string tenants = pop_tenants(queue, 30);
  CHECK_EQ(std::count(tenants.begin(), tenants.end(), 'a'), 10);
}

TEST_CASE(
    "a tenant that comes late neither waits behind a flood nor gets back what it did not use") {
  FairQueue queue({1000}, seconds(60));
  for (RequestId id = 0; id < 100; ++id)
    queue.push(item_of(id, "a", 90));
  pop_tenants(queue, 50);
  for (RequestId id = 200; id < 210; ++id)
    queue.push(item_of(id, "b", 90));
  const std::string tenants = pop_tenants(queue, 10);
  CHECK_GE(std::count(tenants.begin(), tenants.end(), 'b'), 4);
  CHECK_LE(std::count(tenants.begin(), tenants.end(), 'b'), 6);
}

TEST_CASE("short requests do not stand behind long ones, and the long ones are not starved") {
  FairQueue queue({100}, seconds(60));
  for (RequestId id = 0; id < 10; ++id)
    queue.push(item_of(id, "a", 990));
  for (RequestId id = 10; id < 400; ++id)
    queue.push(item_of(id, "a", 10));
  int num_long = 0;
  for (int i = 0; i < 204; ++i)
    num_long += queue.pop(kStart, any)->num_prompt == 990 ? 1 : 0;
  CHECK_GE(num_long, 3);
  CHECK_LE(num_long, 5);
}

TEST_CASE(
    "an aged request goes before younger ones of any bucket, and holds the line until it fits") {
  FairQueue queue({100}, seconds(2));
  queue.push(item_of(1, "a", 990, kStart));
  queue.push(item_of(2, "a", 10, kStart + seconds(1)));
  const auto small_only = [](const QueueItem& item) { return item.num_prompt < 100; };
  FairQueue young = queue;
  CHECK_EQ(young.pop(kStart + seconds(1), small_only)->id, 2);
  CHECK_FALSE(queue.pop(kStart + seconds(2), small_only).has_value());
  CHECK_EQ(queue.pop(kStart + seconds(2), any)->id, 1);
}

TEST_CASE("what lost its place goes before all others, oldest first") {
  FairQueue queue({100}, seconds(2));
  queue.push(item_of(5, "a", 10));
  queue.push_front(item_of(4, "b", 10));
  queue.push_front(item_of(3, "b", 10));
  CHECK_EQ(queue.pop(kStart, any)->id, 3);
  CHECK_EQ(queue.pop(kStart, any)->id, 4);
  CHECK_EQ(queue.pop(kStart, any)->id, 5);
  CHECK(queue.empty());
}

TEST_CASE("nothing is lost or doubled under random use") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random_bits(seed, draw++) % bound; };
    FairQueue queue({16, 64, 256}, seconds(2));
    std::set<RequestId> model;
    RequestId next = 1;
    TimePoint now = kStart;
    for (int i = 0; i < 600; ++i) {
      now += std::chrono::milliseconds(below(50));
      const std::uint64_t what = below(6);
      if (what < 3) {
        const std::string tenant = "t" + std::to_string(below(5));
        QueueItem item = item_of(next, tenant, 1 + below(400), now);
        model.insert(next++);
        if (what == 0) {
          queue.push_front(std::move(item));
        } else {
          queue.push(std::move(item));
        }
      } else if (what == 3) {
        const RequestId id = 1 + below(next);
        CHECK_EQ(queue.remove(id), model.erase(id) == 1);
      } else {
        const std::uint64_t limit = below(500);
        const auto fits = [limit](const QueueItem& item) { return item.num_prompt <= limit; };
        if (const auto item = queue.pop(now, fits)) {
          CHECK_LE(item->num_prompt, limit);
          REQUIRE_EQ(model.erase(item->id), 1);
        }
      }
      queue.audit();
      REQUIRE_EQ(queue.size(), model.size());
    }
    CHECK(queue.ids() == std::vector<RequestId>(model.begin(), model.end()));
    while (queue.pop(now, any)) {
    }
    CHECK_EQ(queue.tokens(), 0);
  }
}

}  // namespace brigade::router
