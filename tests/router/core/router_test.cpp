// SPDX-License-Identifier: Apache-2.0
#include "router/core/router.h"

#include <algorithm>
#include <map>

#include "tests/router/core/support/world_steps.h"

namespace brigade::router::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a cancelled request says so once, and its blocks are back within a step") {
  World world({});
  bring_up(world);
  world.submit(request_of(1, 40, 400));
  world.run_for(milliseconds(100));
  CHECK_GT(world.router().status().replicas[0].kv_used, 0);
  world.cancel(1);
  CHECK(world.client(1).last.finish == wire::FinishReason::kCancelled);
  CHECK_EQ(world.router().status().replicas[0].kv_used, 0);
  world.cancel(1);
  world.run_for(milliseconds(20));
  world.submit(request_of(2));
  world.cancel(2);
  CHECK_EQ(world.router().status().cancelled, 2);
  CHECK_EQ(world.router().status().in_flight, 0);
}

TEST_CASE("a request past its deadline ends with what it has") {
  World world({});
  bring_up(world);
  Request request = request_of(1, 8, 400);
  request.params.deadline_ms = 200;
  const TimePoint begin = world.now();
  world.submit(request);
  run_to_end(world);
  CHECK(code_of(world, 1) == StatusCode::kDeadlineExceeded);
  CHECK_EQ(world.now() - begin, milliseconds(200));
  CHECK_GT(world.client(1).tokens.size(), 10);
  CHECK(world.client(1).last.drop_reason == wire::DropReason::kEvictedExpired);
}

TEST_CASE("a request whose deadline passes in the queue ends at once and cost no compute") {
  WorldOptions options;
  options.router.max_seqs = 1;
  World world(options);
  bring_up(world);
  world.submit(request_of(1, 8, 200));
  Request late = request_of(2);
  late.params.deadline_ms = 300;
  const TimePoint begin = world.now();
  world.submit(late);
  REQUIRE(world.run_until([&] { return world.client(2).ended; }, seconds(10)));
  CHECK_EQ(world.now() - begin, milliseconds(300));
  CHECK(code_of(world, 2) == StatusCode::kDeadlineExceeded);
  CHECK(world.client(2).last.drop_reason == wire::DropReason::kExpired);
  CHECK_EQ(world.router().status().replicas[0].running, 1);
  run_to_end(world);
}

TEST_CASE("a request that is late when its turn comes is not placed, timer or not") {
  WorldOptions options;
  options.router.max_seqs = 1;
  World world(options);
  bring_up(world);
  world.submit(request_of(1, 8, 200));
  Request late = request_of(2);
  late.params.deadline_ms = 300;
  world.submit(late);
  const TimePoint after = world.now() + milliseconds(301);
  world.with_router([&](Router& router) { router.cancel(1, after); });
  CHECK(code_of(world, 2) == StatusCode::kDeadlineExceeded);
  CHECK(world.client(2).last.drop_reason == wire::DropReason::kExpired);
  CHECK_EQ(world.router().status().replicas[0].running, 0);
}

TEST_CASE("requests of a lost replica go on elsewhere from the token they had reached") {
  WorldOptions options;
  options.router.pp_size = 2;
  World world(options);
  bring_up(world, 4);
  for (RequestId id = 1; id <= 8; ++id)
    world.submit(request_of(id, 8, 200));
  world.run_for(milliseconds(500));
  world.kill(1, milliseconds(5));
  run_to_end(world);
  const RouterStatus status = world.router().status();
  CHECK_EQ(status.completed, 8);
  CHECK_GE(status.failed_over, 3);
}

TEST_CASE("requests of the only replica end with the reason when it is lost") {
  World world({});
  bring_up(world);
  world.submit(request_of(1, 8, 200));
  world.run_for(milliseconds(100));
  world.kill(1, milliseconds(5));
  run_to_end(world);
  CHECK(code_of(world, 1) == StatusCode::kUnavailable);
  CHECK(says(world, 1, "replica 0 was lost (worker w1"));
  CHECK(says(world, 1, "its process ended) and there is no other"));
  CHECK_GT(world.client(1).tokens.size(), 5);
}

TEST_CASE("requests wait for a replica that loads when theirs is lost") {
  WorldOptions options;
  options.load_time = seconds(2);
  World world(options);
  bring_up(world);
  world.submit(request_of(1, 8, 200));
  world.spawn();
  world.run_for(milliseconds(500));
  world.kill(1, milliseconds(5));
  run_to_end(world);
  CHECK(world.client(1).last.finish == wire::FinishReason::kLength);
}

TEST_CASE("a request that loses its replica too often ends") {
  WorldOptions options;
  options.router.max_fail_overs = 1;
  World world(options);
  bring_up(world, 3);
  world.submit(request_of(1, 8, 400));
  for (int i = 0; i < 2; ++i) {
    world.run_for(milliseconds(200));
    for (const ReplicaStatus& replica : world.router().status().replicas) {
      if (replica.running > 0) world.kill(replica.ranks[0].pid, milliseconds(1));
    }
  }
  run_to_end(world);
  CHECK(says(world, 1, "has moved 1 times already"));
}

TEST_CASE("a replica that owes a step's result too long is torn down") {
  WorldOptions options;
  options.router.step_timeout = seconds(5);
  options.router.heartbeat_timeout = seconds(1000);
  World world(options);
  bring_up(world, 2);
  world.submit(request_of(1, 8, 400));
  world.run_for(milliseconds(100));
  world.find(1)->hang();
  const TimePoint begin = world.now();
  REQUIRE(world.run_until([&] { return world.router().status().failed_over > 0; }, seconds(60)));
  CHECK_GE(world.now() - begin, milliseconds(4990));
  CHECK_LE(world.now() - begin, milliseconds(5000));
  run_to_end(world);
  CHECK(world.client(1).last.finish == wire::FinishReason::kLength);
}

TEST_CASE("a result that does not match tears the replica down loudly") {
  World world({});
  bring_up(world, 2);
  world.submit(request_of(1, 8, 100));
  world.run_for(milliseconds(100));
  world.corrupt_next_result();
  run_to_end(world);
  CHECK(world.client(1).last.finish == wire::FinishReason::kLength);
  CHECK_EQ(world.router().status().failed_over, 1);
}

TEST_CASE("a late result of an epoch that is over changes nothing") {
  World world({});
  bring_up(world, 2);
  world.submit(request_of(1, 8, 100));
  world.run_for(milliseconds(50));
  const auto send = [&](WorkerId worker, std::uint64_t epoch) {
    const wire::StepResult late{.epoch = epoch, .step = 1, .cu_top = {0}};
    world.with_router([&](Router& router) { router.on_message(worker, late, world.now()); });
  };
  send(1, 2);
  send(2, 1);
  send(1, 0);
  CHECK(world.router().ready());
  for (const ReplicaStatus& replica : world.router().status().replicas) {
    CHECK_EQ(replica.state, "ready");
  }
  run_to_end(world);
  CHECK_EQ(world.router().status().failed_over, 0);
}

TEST_CASE("a load that keeps failing ends those that wait for it with its error") {
  World world({});
  world.fail_next_loads(100);
  world.spawn();
  world.run_for(milliseconds(10));
  world.submit(request_of(1));
  run_to_end(world);
  CHECK(code_of(world, 1) == StatusCode::kUnavailable);
  CHECK(says(world, 1, "cannot read the weights"));
  world.submit(request_of(2));
  CHECK(says(world, 2, "tries to bring one up failed"));
}

TEST_CASE("a drained replica finishes its requests, takes no more, and lets its workers go") {
  World world({});
  bring_up(world, 2);
  for (RequestId id = 1; id <= 4; ++id)
    world.submit(request_of(id, 8, 200));
  world.run_for(milliseconds(100));
  world.with_router([&](Router& router) { CHECK(router.drain(0, world.now()).ok()); });
  for (RequestId id = 5; id <= 8; ++id)
    world.submit(request_of(id, 8, 200));
  CHECK_EQ(world.router().status().replicas[0].running, 2);
  CHECK_EQ(world.router().status().replicas[0].state, "draining");
  run_to_end(world);
  world.run_for(seconds(1));
  CHECK_EQ(world.router().status().completed, 8);
  CHECK_EQ(world.router().status().replicas.size(), 1);
  CHECK_EQ(world.worker_ids().size(), 1);
}

TEST_CASE("a request that a draining replica runs out of KV for comes back to it and finishes") {
  WorldOptions options;
  options.kv_blocks = 20;
  World world(options);
  bring_up(world);
  for (RequestId id = 1; id <= 3; ++id)
    world.submit(request_of(id, 10, 150));  // 10 blocks each in the end
  world.run_for(milliseconds(50));
  CHECK_EQ(world.router().status().replicas[0].running, 3);
  world.with_router([&](Router& router) { CHECK(router.drain(0, world.now()).ok()); });
  REQUIRE(world.run_until([&] { return world.all_ended(); }, seconds(60)));
  CHECK_GT(world.router().status().preempted, 0);
  CHECK_EQ(world.router().status().completed, 3);
  world.run_for(seconds(1));
  CHECK(world.worker_ids().empty());
}

TEST_CASE("requests are preempted when KV runs out, and all end as undisturbed") {
  WorldOptions options;
  options.kv_blocks = 20;
  World world(options);
  bring_up(world);
  for (RequestId id = 1; id <= 12; ++id)
    world.submit(request_of(id, 10, 150));
  run_to_end(world);
  CHECK_EQ(world.router().status().completed, 12);
  CHECK_GT(world.router().status().preempted, 0);
  CHECK_LE(world.router().status().preempted, 36);
}

TEST_CASE("a worker that was given up is told to leave when it speaks again") {
  WorldOptions options;
  options.router.heartbeat_timeout = seconds(2);
  World world(options);
  bring_up(world);
  world.find(1)->hang();
  world.run_for(seconds(4));
  CHECK(world.router().status().replicas[0].state == "lost");
  world.find(1)->resume();
  world.run_for(seconds(1));
  CHECK(world.find(1) == nullptr);
}

TEST_CASE("a draining replica whose only worker falls silent in a step is given up") {
  WorldOptions options;
  options.router.heartbeat_timeout = seconds(3);
  options.router.step_timeout = seconds(4);
  World world(options);
  bring_up(world);
  world.submit(request_of(1));
  REQUIRE(world.run_until([&] { return world.client(1).tokens.size() == 3; }, seconds(10)));
  world.with_router([&](Router& router) { CHECK(router.drain(0, world.now()).ok()); });
  world.find(world.worker_ids().front())->hang();
  run_to_end(world);
  CHECK(code_of(world, 1) == StatusCode::kUnavailable);
  world.run_for(seconds(4));
  CHECK(world.router().status().replicas.empty());
}

TEST_CASE("ranks of a draining replica that owes a step too long get their time to leave") {
  WorldOptions options;
  options.router.pp_size = 2;
  options.router.heartbeat_timeout = seconds(3);
  options.router.step_timeout = milliseconds(4500);
  World world(options);
  bring_up(world, 2);
  world.submit(request_of(1));
  REQUIRE(world.run_until([&] { return world.client(1).tokens.size() == 3; }, seconds(10)));
  world.with_router([&](Router& router) { CHECK(router.drain(0, world.now()).ok()); });
  world.find(1)->hang();
  world.run_for(milliseconds(1100));
  world.find(2)->hang();  // silent for more than 3 s when the step is given up
  run_to_end(world);
  world.run_for(seconds(2));
  CHECK(world.worker_ids().size() == 2);
  CHECK_FALSE(world.router().status().replicas.empty());
  world.run_for(seconds(2));
  CHECK(world.router().status().replicas.empty());
}

TEST_CASE("requests are placed until the lanes are full, not until the next event") {
  WorldOptions options;
  options.router.pp_size = 4;
  options.router.step_tokens = 16;
  World world(options);
  for (int i = 0; i < 4; ++i)
    world.spawn();
  world.run_for(milliseconds(20));
  for (RequestId id = 1; id <= 8; ++id)
    world.submit(request_of(id, 16));
  CHECK_EQ(world.router().status().queued_requests, 8);
  REQUIRE(world.run_until([&] { return world.router().ready(); }, seconds(10)));
  // Four prompts fill the budget; their steps are planned, and it is there for the next ones.
  const std::uint32_t running = world.router().status().replicas[0].running;
  CHECK_GT(running, 4);
  world.with_router([&](Router& router) { router.advance(world.now()); });
  CHECK_EQ(world.router().status().replicas[0].running, running);
}

}  // namespace brigade::router::testing
