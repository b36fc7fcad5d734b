// SPDX-License-Identifier: Apache-2.0
#include "router/core/fair_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "common/base/random.h"
#include "tests/router/core/support/naive_queue.h"

namespace brigade::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::NaiveQueue;

constexpr TimePoint kStart{seconds(100)};

FairQueue::Options options_of(std::vector<std::uint32_t> edges = {1000}) {
  return {.bucket_edges = std::move(edges), .ageing = seconds(2)};
}

QueueItem item_of(RequestId id, const std::string& tenant, std::uint64_t num_uncached,
                  std::int32_t priority = 0, TimePoint since = kStart) {
  return {.id = id,
          .order = id,
          .tenant = tenant,
          .priority = priority,
          .num_uncached = num_uncached,
          .cost = num_uncached + 10,
          .since = since};
}

std::optional<std::uint64_t> any(const QueueItem& item) {
  return item.cost;
}

RequestId pop_id(FairQueue& queue, TimePoint now = kStart) {
  return queue.pop(any, now)->id;
}

std::string pop_tenants(FairQueue& queue, int count) {
  std::string tenants;
  for (int i = 0; i < count; ++i)
    tenants += queue.pop(any, kStart)->tenant;
  return tenants;
}

std::ptrdiff_t count_of(const std::string& tenants, char tenant) {
  return std::count(tenants.begin(), tenants.end(), tenant);
}

}  // namespace

TEST_CASE("tenants share by tokens, not by requests") {
  FairQueue queue(options_of());
  for (RequestId id = 0; id < 30; ++id) {
    queue.push(item_of(3 * id, "a", 90));
    queue.push(item_of(3 * id + 1, "b", 40));
    queue.push(item_of(3 * id + 2, "b", 40));
  }
  // 100 tokens of one to two times 50 of the other.
  CHECK_EQ(count_of(pop_tenants(queue, 30), 'a'), 10);
}

TEST_CASE("tenants share by their weights") {
  FairQueue::Options options = options_of();
  options.weights = {{"a", 3}};
  FairQueue queue(options);
  for (RequestId id = 0; id < 80; ++id) {
    queue.push(item_of(2 * id, "a", 90));
    queue.push(item_of(2 * id + 1, "b", 90));
  }
  CHECK_EQ(count_of(pop_tenants(queue, 40), 'a'), 30);
}

TEST_CASE("a tenant that comes late neither waits behind a flood nor gets what it did not use") {
  FairQueue queue(options_of());
  for (RequestId id = 0; id < 100; ++id)
    queue.push(item_of(id, "a", 90));
  pop_tenants(queue, 50);
  for (RequestId id = 200; id < 210; ++id)
    queue.push(item_of(id, "b", 90));
  const std::string tenants = pop_tenants(queue, 10);
  CHECK_GE(count_of(tenants, 'b'), 4);
  CHECK_LE(count_of(tenants, 'b'), 6);
}

TEST_CASE("while two tenants wait their counters differ by one charge, whoever sends more") {
  // The bound of the class, on what each is served for its weight: 2 C over any such time, and here
  // C from the start, as both start level.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random_bits(seed, draw++) % bound; };
    FairQueue::Options options = options_of({64, 512});
    const std::uint64_t weight = 1 + below(4);
    options.weights = {{"small", static_cast<std::uint32_t>(weight)}};
    FairQueue queue(options);
    constexpr std::uint64_t kMaxCost = 2010;
    RequestId next = 1;
    const auto push = [&](const std::string& tenant) {
      queue.push(item_of(next++, tenant, 1 + below(kMaxCost - 10)));
    };
    for (int i = 0; i < 100; ++i)
      push("flood");
    push("small");
    push("small");
    double flood = 0;
    double small = 0;
    for (int round = 0; round < 2000; ++round) {
      const std::optional<QueueItem> item = queue.pop(any, kStart);
      const auto cost = static_cast<double>(item->cost);
      if (item->tenant == "small") {
        small += cost / static_cast<double>(weight);
        push("small");
      } else {
        flood += cost;
        push("flood");
      }
      CHECK_LE(std::abs(small - flood), kMaxCost + 1);
    }
  }
}

TEST_CASE("a charge is corrected when the output's real length is known") {
  FairQueue queue(options_of());
  for (RequestId id = 0; id < 100; ++id) {
    queue.push(item_of(2 * id, "a", 90));
    queue.push(item_of(2 * id + 1, "b", 90));
  }
  // a's outputs turn out to be 300 tokens longer than charged: four times the work a request.
  std::string tenants;
  for (int i = 0; i < 50; ++i) {
    const std::optional<QueueItem> item = queue.pop(any, kStart);
    queue.settle(item->tenant, item->tenant == "a" ? 300 : 0);
    tenants += item->tenant;
  }
  CHECK_EQ(count_of(tenants, 'a'), 10);
  // And b's shorter: half the work.
  tenants.clear();
  for (int i = 0; i < 30; ++i) {
    const std::optional<QueueItem> item = queue.pop(any, kStart);
    queue.settle(item->tenant, item->tenant == "b" ? -50 : 0);
    tenants += item->tenant;
  }
  CHECK_GE(count_of(tenants, 'b'), 19);
  CHECK_LE(count_of(tenants, 'b'), 21);
}

TEST_CASE("a tenant's debt outlasts its requests' running, and tenants are forgotten in the end") {
  FairQueue queue(options_of());
  queue.push(item_of(1, "a", 90));
  CHECK_EQ(pop_id(queue), 1);
  CHECK_EQ(queue.num_tenants(), 1);
  for (const RequestId id : {2, 3, 4})
    queue.push(item_of(id, "b", 90));
  queue.settle("a", 5000);
  CHECK_EQ(queue.num_tenants(), 2);
  queue.push(item_of(5, "a", 90));
  for (const RequestId id : {2, 3, 4, 5})
    CHECK_EQ(pop_id(queue), id);
  for (const char* tenant : {"b", "b", "b", "a"})
    queue.settle(tenant, 0);
  RequestId next = 10;
  for (int i = 0; i < 1000; ++i) {
    queue.push(item_of(next, "t" + std::to_string(i), 90));
    CHECK_EQ(pop_id(queue), next++);
    queue.settle("t" + std::to_string(i), 40);
  }
  CHECK_LE(queue.num_tenants(), 3);
}

TEST_CASE("short requests do not stand behind long ones, and the long ones are not starved") {
  FairQueue queue(options_of({100}));
  for (RequestId id = 0; id < 10; ++id)
    queue.push(item_of(id, "a", 990));
  for (RequestId id = 10; id < 400; ++id)
    queue.push(item_of(id, "a", 10));
  int num_long = 0;
  for (int i = 0; i < 204; ++i)
    num_long += queue.pop(any, kStart)->num_uncached == 990 ? 1 : 0;
  CHECK_GE(num_long, 3);
  CHECK_LE(num_long, 5);
}

TEST_CASE("the lower priority goes first among a tenant's own requests alone") {
  FairQueue queue(options_of());
  queue.push(item_of(1, "a", 90, 0));
  queue.push(item_of(2, "a", 90, 1));
  queue.push(item_of(3, "a", 90, -1));
  queue.push(item_of(4, "a", 90, -100));
  queue.push(item_of(5, "b", 90, 100));
  CHECK_EQ(pop_id(queue), 4);
  CHECK_EQ(pop_id(queue), 5);
  CHECK_EQ(pop_id(queue), 3);
  CHECK_EQ(pop_id(queue), 1);
  CHECK_EQ(pop_id(queue), 2);
}

TEST_CASE("a less urgent level has a turn for each ageing time a step, under any flood") {
  FairQueue queue(options_of());
  RequestId next = 1000;
  for (RequestId id = 1; id <= 20; ++id)
    queue.push(item_of(id, "a", 90, 3));
  int num_turns = 0;
  for (int i = 0; i < 700; ++i) {  // 70 s
    const TimePoint now = kStart + milliseconds(100) * i;
    queue.push(item_of(next++, "a", 90, 0, now));
    num_turns += pop_id(queue, now) < 1000 ? 1 : 0;
  }
  CHECK_EQ(num_turns, 11);  // 3 steps of 2 s
}

TEST_CASE("what does not fit is passed over by what does, and goes as soon as it fits") {
  FairQueue queue(options_of({100}));
  queue.push(item_of(1, "a", 990));
  queue.push(item_of(2, "a", 10, 0, kStart + seconds(1)));
  queue.push(item_of(3, "b", 500));
  const auto small_only = [](const QueueItem& item) -> std::optional<std::uint64_t> {
    if (item.num_uncached < 100) return item.cost;
    return std::nullopt;
  };
  const TimePoint late = kStart + seconds(1000);
  CHECK_EQ(queue.pop(small_only, late)->id, 2);
  CHECK_FALSE(queue.pop(small_only, late).has_value());
  CHECK_EQ(pop_id(queue, late), 3);
  CHECK_EQ(pop_id(queue, late), 1);
}

TEST_CASE("what lost its place goes before all others, oldest first, and is not charged again") {
  FairQueue queue(options_of({100}));
  queue.push(item_of(5, "a", 10));
  queue.push_front(item_of(4, "b", 10));
  queue.push_front(item_of(3, "b", 10));
  CHECK_EQ(pop_id(queue), 3);
  CHECK_EQ(pop_id(queue), 4);
  CHECK_EQ(queue.num_running(), 0);
  CHECK_EQ(pop_id(queue), 5);
  CHECK_EQ(queue.num_running(), 1);
  CHECK(queue.empty());
}

TEST_CASE("one that a place was kept for goes out of turn, and is charged") {
  FairQueue queue(options_of());
  for (RequestId id = 1; id <= 4; ++id)
    queue.push(item_of(id, "a", 90));
  queue.push(item_of(5, "b", 90));
  CHECK_EQ(queue.pop_one(3, any, kStart)->id, 3);
  CHECK_FALSE(queue
                  .pop_one(
                      2, [](const QueueItem&) { return std::nullopt; }, kStart)
                  .has_value());
  CHECK_EQ(pop_id(queue), 5);
  CHECK_EQ(pop_id(queue), 1);
  queue.push_front(item_of(6, "b", 90));
  CHECK_EQ(queue.pop_one(6, any, kStart)->id, 6);
  CHECK_EQ(queue.num_running(), 3);
  queue.audit();
}

TEST_CASE("a tenant's overload is its own, and ends with a calm of its queue") {
  FairQueue::Options options = options_of();
  options.calm = seconds(3);
  FairQueue queue(options);
  const auto after = [](int ms) { return kStart + milliseconds(ms); };
  queue.set_overload("flood", kStart);  // nothing of it is here or runs
  CHECK_FALSE(queue.is_overload("flood", kStart));
  queue.push(item_of(1, "flood", 90));
  queue.push(item_of(2, "flood", 90));
  queue.push(item_of(3, "small", 90));
  queue.set_overload("flood", after(100));
  CHECK(queue.is_overload("flood", after(9000)));
  CHECK_FALSE(queue.is_overload("small", after(9000)));
  // One that runs still is remembered.
  while (!queue.empty())
    CHECK(queue.pop(any, after(9000)).has_value());
  CHECK(queue.is_overload("flood", after(9999)));
  CHECK_FALSE(queue.is_overload("flood", after(10'000)));
}

TEST_CASE("what is ahead of a request are its shares of tenant, level and bucket") {
  FairQueue::Options options = options_of({100});
  options.weights = {{"big", 3}};
  FairQueue queue(options);
  CHECK_EQ(queue.tokens_ahead(item_of(0, "a", 50)), 0);
  for (RequestId id = 1; id <= 5; ++id)
    queue.push(item_of(id, "a", 990));  // 5000 tokens in a's long bucket
  queue.push(item_of(6, "a", 40));      // 50 in its short one
  // Alone, all of its bucket and as much of the other one.
  CHECK_EQ(queue.tokens_ahead(item_of(0, "a", 50)), 100);
  CHECK_EQ(queue.tokens_ahead(item_of(0, "a", 500)), 5050);
  // More urgent than all of them, less urgent.
  CHECK_EQ(queue.tokens_ahead(item_of(0, "a", 500, -1)), 0);
  CHECK_EQ(queue.tokens_ahead(item_of(0, "a", 50, 1)), 5050);
  // A tenant with nothing here is next; one with three times the weight waits for a third as much.
  CHECK_EQ(queue.tokens_ahead(item_of(0, "b", 500)), 0);
  queue.push(item_of(7, "big", 290));
  CHECK_EQ(queue.tokens_ahead(item_of(0, "big", 150)), 300 * 4 / 3);
  CHECK_EQ(queue.tokens_ahead(item_of(0, "a", 50)), 100 * 4);
  // Never more than there is.
  CHECK_EQ(queue.tokens_ahead(item_of(0, "a", 500)), queue.tokens());
  queue.push_front(item_of(8, "c", 60));
  CHECK_EQ(queue.tokens_ahead(item_of(0, "b", 500)), 70);
}

TEST_CASE("under random use it does as a naive model of its rules") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random_bits(seed, draw++) % bound; };
    FairQueue::Options options = options_of({16, 64, 256});
    options.weights = {{"t1", 2}, {"t2", 5}};
    FairQueue queue(options);
    NaiveQueue model(options);
    RequestId next = 1;
    TimePoint now = kStart;
    for (int i = 0; i < 500; ++i) {
      now += milliseconds(below(300));
      const std::uint64_t what = below(8);
      if (what < 3) {
        const auto priority = static_cast<std::int32_t>(below(3)) - 1;
        QueueItem item = item_of(next++, "t" + std::to_string(below(4)), 1 + below(400),
                                 below(2) == 0 ? 0 : priority, now);
        model.push(item);
        queue.push(std::move(item));
      } else if (what == 3) {
        const RequestId id = 1 + below(next);
        const std::string tenant = model.front_tenant(id);
        CHECK_EQ(queue.remove(id, now), model.remove(id));
        if (!tenant.empty()) {  // it had been charged
          queue.settle(tenant, 0);
          model.settle(tenant, 0);
        }
      } else if (what == 4) {
        if (const auto running = model.take_running(below(100))) {
          const auto correction = static_cast<std::int64_t>(below(200)) - 50;
          if (below(3) == 0) {
            queue.push_front(*running);
            model.push_front(*running);
          } else {
            queue.settle(running->tenant, correction);
            model.settle(running->tenant, correction);
          }
        }
      } else {
        const std::uint64_t limit = below(4) == 0 ? 0 : below(500);
        const auto fits = [limit](const QueueItem& item) -> std::optional<std::uint64_t> {
          if (item.num_uncached > limit) return std::nullopt;
          return item.cost + 1;
        };
        const auto taken = queue.pop(fits, now);
        const auto expected = model.pop(fits, now, taken ? taken->tenant : "");
        REQUIRE_EQ(taken.has_value(), expected.has_value());
        if (taken) REQUIRE_EQ(taken->id, expected->id);
      }
      queue.audit();
      REQUIRE(queue.ids() == model.ids());
      CHECK_EQ(queue.num_running(), model.num_running());
    }
  }
}

}  // namespace brigade::router
