// SPDX-License-Identifier: Apache-2.0
#include "router/core/dispatcher.h"

#include <doctest/doctest.h>

#include "tests/router/core/support/replica_driver.h"

namespace brigade::router {
namespace {

using std::chrono::seconds;
using testing::ReplicaDriver;

}  // namespace

TEST_CASE(
    "a request goes to the replica with the least work in tokens, then most free KV, then lowest "
    "id") {
  ReplicaDriver a({.id = 0, .num_blocks = 100});
  ReplicaDriver b({.id = 1, .num_blocks = 100});
  ReplicaDriver c({.id = 2, .num_blocks = 200});
  const std::map<ReplicaId, PlacementTarget> targets = {
      {0, {&a.replica, true}}, {1, {&b.replica, true}}, {2, {&c.replica, true}}};
  LiveRequest& request = a.add(100, 10, 10);
  CHECK_EQ(choose_replica(targets, request), &c.replica);
  c.start(1, 20, 10);
  CHECK_EQ(choose_replica(targets, request), &a.replica);
  a.start(2, 100, 10);
  CHECK_EQ(choose_replica(targets, request), &b.replica);
}

TEST_CASE("replicas that drain, serve another model or are full are passed over") {
  ReplicaDriver draining({.id = 0});
  ReplicaDriver other({.id = 1, .model_index = 1});
  ReplicaDriver full({.id = 2, .max_seqs = 1});
  const std::map<ReplicaId, PlacementTarget> targets = {
      {0, {&draining.replica, false}}, {1, {&other.replica, true}}, {2, {&full.replica, true}}};
  LiveRequest& request = full.add(100, 10, 10);
  CHECK_EQ(choose_replica(targets, request), &full.replica);
  full.start(1, 5, 5);
  CHECK(choose_replica(targets, request) == nullptr);
  CHECK(can_ever_be_placed(targets, request));
  LiveRequest& huge = full.add(101, 2000, 10);
  CHECK_FALSE(can_ever_be_placed(targets, huge));
}

TEST_CASE("Retry-After follows the drain rate, between 1 and 60 s") {
  DrainRate rate;
  const TimePoint start{seconds(100)};
  CHECK_EQ(rate.retry_after_s(1000, start), 60);
  for (int i = 0; i < 600; ++i)
    rate.add(100, start + std::chrono::milliseconds(100) * i);
  const TimePoint now = start + seconds(60);  // 1000 tokens a second
  CHECK_EQ(rate.retry_after_s(0, now), 1);
  const std::uint32_t wait = rate.retry_after_s(20000, now);
  CHECK_GE(wait, 19);
  CHECK_LE(wait, 22);
  CHECK_EQ(rate.retry_after_s(10'000'000, now), 60);
}

}  // namespace brigade::router
