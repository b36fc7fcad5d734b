// SPDX-License-Identifier: Apache-2.0
#include "router/core/dispatcher.h"

#include <doctest/doctest.h>

#include "tests/router/core/support/replica_driver.h"

namespace brigade::router {
namespace {

using testing::FakeTokenizer;
using testing::ReplicaDriver;

LiveRequest& sharing(ReplicaDriver& driver, RequestId id, std::size_t num_prompt) {
  driver.shares = true;
  LiveRequest& request = driver.add(id, num_prompt, 10);
  request.chain.extend(request.tokens);
  return request;
}

}  // namespace

TEST_CASE(
    "a request goes to the replica with the least work in tokens, then most unused KV, then "
    "lowest id") {
  ReplicaDriver a({.id = 0, .num_blocks = 100});
  ReplicaDriver b({.id = 1, .num_blocks = 100});
  const PlacementTargets targets = {{0, {&a.replica, true}}, {1, {&b.replica, true}}};
  LiveRequest& request = a.add(100, 10, 10);
  CHECK_EQ(choose_replica(targets, request, {}).replica, &a.replica);
  CHECK_EQ(choose_replica(targets, request, {}).num_uncached, 10);
  a.start(1, 20, 10);
  CHECK_EQ(choose_replica(targets, request, {}).replica, &b.replica);
  b.start(2, 100, 10);
  CHECK_EQ(choose_replica(targets, request, {}).replica, &a.replica);
}

TEST_CASE("of replicas without work the one whose cache holds less takes a cold prompt") {
  ReplicaDriver a({.id = 0, .num_blocks = 100});
  ReplicaDriver b({.id = 1, .num_blocks = 100});
  a.shares = true;
  a.cancel(a.start(1, 100, 10));
  const PlacementTargets targets = {{0, {&a.replica, true}}, {1, {&b.replica, true}}};
  CHECK_EQ(choose_replica(targets, b.add(2, 10, 10), {}).replica, &a.replica);
  LiveRequest& first = a.start(3, 100, 10);
  for (const wire::StepCommand& command : a.plan())
    CHECK(a.finish(command).ok());
  a.cancel(first);
  for (const wire::StepCommand& command : a.plan())
    CHECK(a.finish(command).ok());
  CHECK_EQ(a.replica.load_tokens(), 0);
  CHECK_GT(a.replica.blocks().num_cached(), 0);
  CHECK_EQ(choose_replica(targets, b.add(4, 10, 10), {}).replica, &b.replica);
}

TEST_CASE("a request goes where its prefix is, until that costs more than computing it anew") {
  ReplicaDriver a({.id = 0, .num_blocks = 400, .step_tokens = 4096});
  ReplicaDriver b({.id = 1, .num_blocks = 400, .step_tokens = 4096});
  const PlacementTargets targets = {{0, {&a.replica, true}}, {1, {&b.replica, true}}};
  a.shares = true;
  a.start(1, 1000, 10);
  CHECK_GE(a.plan().size(), 1);
  LiveRequest& request = sharing(b, 100, 1010);
  CHECK_EQ(num_uncached(targets, request), 18);
  const Placement placement = choose_replica(targets, request, {});
  CHECK_EQ(placement.replica, &a.replica);
  CHECK_EQ(placement.num_uncached, 18);
  a.shares = false;
  a.start(2, 900, 10);
  CHECK_EQ(choose_replica(targets, request, {}).replica, &a.replica);
  a.start(3, 100, 10);  // work: 1000 and the outputs
  CHECK_EQ(choose_replica(targets, request, {}).replica, &b.replica);
  CHECK_EQ(choose_replica(targets, request, {}).num_uncached, 1010);
}

TEST_CASE("a prefix that keeps its replica the busier one is taken to another in the end") {
  ReplicaDriver a({.id = 0, .num_blocks = 400, .step_tokens = 4096});
  ReplicaDriver b({.id = 1, .num_blocks = 400, .step_tokens = 4096});
  const PlacementTargets targets = {{0, {&a.replica, true}}, {1, {&b.replica, true}}};
  a.shares = true;
  a.start(1, 1000, 10);
  CHECK_GE(a.plan().size(), 1);
  a.shares = false;
  a.start(2, 290, 10);  // a detour of 310 with the outputs
  LiveRequest& request = sharing(b, 100, 1010);
  LiveRequest& other = b.add(101, 10, 10);
  HotPrefixes hot;
  const auto place = [&] {
    const Placement placement = choose_replica(targets, request, hot);
    note_placement(placement, hot);
    // What shares nothing changes nothing.
    note_placement(choose_replica(targets, other, hot), hot);
    return placement.replica->options().id;
  };
  // 992 tokens to compute anew: four detours.
  for (const ReplicaId expected : {0, 0, 0, 0, 1, 0, 0, 0, 0, 1})
    CHECK_EQ(place(), expected);
}

TEST_CASE("a hot prefix does not herd: work stays level within its length") {
  std::vector<std::unique_ptr<ReplicaDriver>> drivers;
  PlacementTargets targets;
  for (ReplicaId id = 0; id < 4; ++id) {
    drivers.push_back(std::make_unique<ReplicaDriver>(
        Replica::Options{.id = id, .num_blocks = 4000, .step_tokens = 65536}));
    drivers.back()->shares = true;
    targets[id] = {&drivers.back()->replica, true};
  }
  std::uint64_t num_misses = 0;
  for (RequestId id = 1; id <= 200; ++id) {
    LiveRequest& request = sharing(*drivers[0], 1000 + id, 1040);
    const Placement placement = choose_replica(targets, request, {});
    num_misses += placement.num_uncached > 40 ? 1 : 0;
    drivers[placement.replica->options().id]->start(id, 1040, 10);
  }
  CHECK_EQ(num_misses, 4);  // each learns it once
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t most = 0;
  for (const auto& driver : drivers) {
    least = std::min(least, driver->replica.load_tokens());
    most = std::max(most, driver->replica.load_tokens());
  }
  CHECK_LE(most - least, 1040);
}

TEST_CASE("KV that a replica lacks counts as work") {
  ReplicaDriver a({.id = 0, .num_blocks = 20});
  ReplicaDriver b({.id = 1, .num_blocks = 200});
  const PlacementTargets targets = {{0, {&a.replica, true}}, {1, {&b.replica, true}}};
  b.start(1, 20, 10);
  LiveRequest& small = a.add(100, 100, 100);
  CHECK_EQ(choose_replica(targets, small, {}).replica, &a.replica);
  LiveRequest& large = a.add(101, 250, 128);  // wants 378 of a's 320
  CHECK_EQ(choose_replica(targets, large, {}).replica, &b.replica);
}

TEST_CASE("replicas that drain, serve another model, are full or kept are passed over") {
  ReplicaDriver draining({.id = 0});
  ReplicaDriver other({.id = 1, .model_index = 1});
  ReplicaDriver full({.id = 2, .max_seqs = 1});
  PlacementTargets targets = {
      {0, {&draining.replica, false}}, {1, {&other.replica, true}}, {2, {&full.replica, true}}};
  LiveRequest& request = full.add(100, 10, 10);
  CHECK_EQ(choose_replica(targets, request, {}).replica, &full.replica);
  targets.at(2).reserved_for = 7;
  CHECK(choose_replica(targets, request, {}).replica == nullptr);
  targets.at(2).reserved_for = 100;
  CHECK_EQ(choose_replica(targets, request, {}).replica, &full.replica);
  full.start(1, 5, 5);
  CHECK(choose_replica(targets, request, {}).replica == nullptr);
  CHECK(can_ever_be_placed(targets, request));
  LiveRequest& huge = full.add(101, 2000, 10);
  CHECK_FALSE(can_ever_be_placed(targets, huge));
}

TEST_CASE("a replica is kept for what waits long, one for each, and never more than half of them") {
  std::vector<std::unique_ptr<ReplicaDriver>> drivers;
  PlacementTargets targets;
  for (ReplicaId id = 0; id < 4; ++id) {
    drivers.push_back(std::make_unique<ReplicaDriver>(
        Replica::Options{.id = id, .num_blocks = id == 3 ? 10U : 64U}));
    targets[id] = {&drivers.back()->replica, true};
  }
  const auto kept = [&targets] {
    std::vector<RequestId> requests;
    for (const auto& [id, target] : targets)
      requests.push_back(target.reserved_for.value_or(0));
    return requests;
  };
  LiveRequest& first = drivers[0]->add(100, 500, 10);
  LiveRequest& second = drivers[0]->add(101, 500, 10);
  LiveRequest& third = drivers[0]->add(102, 500, 10);
  reserve_replica(targets, first);
  CHECK(kept() == std::vector<RequestId>{0, 0, 0, 0});  // there is KV for it
  drivers[0]->start(1, 700, 10);
  drivers[1]->start(1, 600, 10);
  drivers[2]->start(1, 700, 10);
  reserve_replica(targets, first);  // the one with the most free KV
  reserve_replica(targets, first);
  CHECK(kept() == std::vector<RequestId>{0, 100, 0, 0});
  reserve_replica(targets, second);
  reserve_replica(targets, third);
  CHECK(kept() == std::vector<RequestId>{101, 100, 0, 0});
  release_reservation(targets, 100);
  reserve_replica(targets, third);
  CHECK(kept() == std::vector<RequestId>{101, 102, 0, 0});
  PlacementTargets one = {{0, {&drivers[0]->replica, true}}};
  reserve_replica(one, first);
  CHECK(one.at(0).reserved_for == 100);
}

}  // namespace brigade::router
