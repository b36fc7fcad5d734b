// SPDX-License-Identifier: Apache-2.0
#include "router/core/router.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/router/core/support/world.h"

namespace brigade::router::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Request request_of(RequestId id, std::size_t num_prompt = 8, std::uint32_t max_tokens = 40) {
  Request request{.id = id, .tenant = "t", .model = "fake"};
  request.prompt.assign(num_prompt, FakeTokenizer::kA + static_cast<std::int32_t>(id % 20));
  request.params.temperature = 0;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  return request;
}

void bring_up(World& world, std::uint32_t num_workers = 1) {
  for (std::uint32_t i = 0; i < num_workers; ++i)
    world.spawn();
  REQUIRE(world.run_until([&] { return world.router().ready(); }, seconds(10)));
  world.run_for(seconds(1));
}

void run_to_end(World& world) {
  REQUIRE(world.run_until([&] { return world.all_ended(); }, seconds(1000)));
}

bool says(const World& world, RequestId id, const std::string& text) {
  return world.clients().at(id).last.status.message().find(text) != std::string::npos;
}

StatusCode code_of(const World& world, RequestId id) {
  return world.clients().at(id).last.status.code();
}

}  // namespace

TEST_CASE("an unknown model is refused by name, with what there is") {
  World world({});
  bring_up(world);
  Request request = request_of(1);
  request.model = "gpt";
  world.submit(request);
  CHECK(code_of(world, 1) == StatusCode::kNotFound);
  CHECK(says(world, 1, "there is no \"gpt\"; this router serves \"fake\""));
  CHECK_EQ(world.router().status().refused, 1);
  CHECK_EQ(world.router().status().accepted, 0);
}

TEST_CASE(
    "a request before any worker is here is refused, one while a replica loads waits for it") {
  World world({});
  world.submit(request_of(1));
  CHECK(code_of(world, 1) == StatusCode::kUnavailable);
  CHECK_GT(world.client(1).last.retry_after_s, 0);
  world.spawn();
  world.run_for(milliseconds(10));
  world.submit(request_of(2));
  run_to_end(world);
  CHECK(world.client(2).last.finish == wire::FinishReason::kLength);
}

TEST_CASE(
    "past the queue's bounds requests are refused at once with Retry-After, and others go on") {
  WorldOptions options;
  options.router.max_seqs = 1;
  options.router.max_queued_requests = 3;
  World world(options);
  bring_up(world);
  for (RequestId id = 1; id <= 6; ++id)
    world.submit(request_of(id));
  for (const RequestId id : {5, 6}) {
    CHECK(code_of(world, id) == StatusCode::kResourceExhausted);
    CHECK_GE(world.client(id).last.retry_after_s, 1);
    CHECK(world.client(id).last.drop_reason == wire::DropReason::kSaturated);
  }
  run_to_end(world);
  CHECK_EQ(world.router().status().completed, 4);
  CHECK_EQ(world.router().status().refused, 2);
}

TEST_CASE("the queue is bounded by tokens and by tenant too") {
  WorldOptions options;
  options.router.max_seqs = 1;
  options.router.max_queued_tokens = 300;
  options.router.max_queued_requests_per_tenant = 2;
  World world(options);
  bring_up(world);
  world.submit(request_of(1, 100, 10));
  world.submit(request_of(2, 100, 10));
  world.submit(request_of(3, 195, 10));
  CHECK(says(world, 3, "tokens wait"));
  world.submit(request_of(4));
  world.submit(request_of(5));
  CHECK(says(world, 5, "of yours wait"));
  run_to_end(world);
}

TEST_CASE(
    "under overload what would wait too long is refused at once, and the rest waits as told") {
  WorldOptions options;
  options.router.max_seqs = 8;
  options.router.max_queue_delay = seconds(2);
  options.audit = false;
  World world(options);
  bring_up(world);
  // Each takes about 25 ms of 8 slots that are busy for 200 ms: four times what can be served.
  constexpr int kRequests = 4000;
  std::map<RequestId, TimePoint> submitted;
  for (RequestId id = 1; id <= kRequests; ++id) {
    submitted[id] = world.now();
    world.submit(request_of(id, 8, 30));
    world.run_for(microseconds(6250));
  }
  run_to_end(world);
  Duration longest{};
  std::uint64_t num_late = 0;
  for (const auto& [id, client] : world.clients()) {
    if (client.last.status.ok()) {
      if (submitted[id] - submitted[1] < seconds(5)) continue;
      const Duration wait = client.token_times.front() - submitted[id];
      longest = std::max(longest, wait);
      num_late += wait > milliseconds(2400) ? 1 : 0;
    } else {
      CHECK(code_of(world, id) == StatusCode::kResourceExhausted);
      CHECK(client.last.drop_reason == wire::DropReason::kSaturated);
      CHECK_GE(client.last.retry_after_s, 2);
      CHECK_LE(client.last.retry_after_s, 4);
    }
  }
  CHECK_GT(world.router().status().refused, kRequests / 2);
  CHECK_GT(longest, milliseconds(1500));
  CHECK_EQ(num_late, 0);
}

TEST_CASE("a request that would expire in the queue is refused instead") {
  WorldOptions options;
  options.router.max_seqs = 1;
  World world(options);
  bring_up(world);
  for (RequestId id = 1; id <= 20; ++id)
    world.submit(request_of(id, 8, 40));
  world.run_for(seconds(2));
  Request hasty = request_of(100);
  hasty.params.deadline_ms = 50;
  world.submit(hasty);
  CHECK(code_of(world, 100) == StatusCode::kResourceExhausted);
  CHECK(says(world, 100, "past its deadline"));
  run_to_end(world);
}

TEST_CASE("a flood of one tenant neither fills the queue for another nor delays it") {
  WorldOptions options;
  options.router.max_seqs = 4;
  options.router.max_queued_requests = 40;
  options.router.max_queued_requests_per_tenant = 30;
  World world(options);
  bring_up(world);
  for (RequestId id = 1; id <= 100; ++id)
    world.submit(request_of(id, 8, 40));
  Request small = request_of(200);
  small.tenant = "small";
  const TimePoint begin = world.now();
  world.submit(small);
  REQUIRE(world.run_until([&] { return world.client(200).ended; }, seconds(60)));
  CHECK(world.client(200).last.status.ok());
  // One round of the slots, and its own run.
  CHECK_LE(world.now() - begin, milliseconds(700));
  CHECK_GT(world.router().status().queued_requests, 20);
  run_to_end(world);
}

TEST_CASE("a request too large for now has a replica kept for it, and the others go on elsewhere") {
  WorldOptions options;
  options.models = {make_fake_model("fake", 2048)};
  options.kv_blocks = 64;
  options.router.queue_ageing = milliseconds(500);
  World world(options);
  bring_up(world, 2);
  RequestId next = 1;
  const auto keep_busy = [&] {
    while (world.router().status().queued_requests < 4)
      world.submit(request_of(next++, 60, 60));
  };
  keep_busy();
  const TimePoint begin = world.now();
  constexpr RequestId kLarge = 1'000'000;
  world.submit(request_of(kLarge, 900, 20));  // 58 of a replica's 64 blocks
  while (!world.client(kLarge).ended && world.now() - begin < seconds(60)) {
    world.run_for(milliseconds(20));
    keep_busy();
  }
  CHECK(world.client(kLarge).last.finish == wire::FinishReason::kLength);
  CHECK_LE(world.now() - begin, seconds(4));
  // The other replica was not idle meanwhile.
  CHECK_GE(world.router().status().completed, 10);
  run_to_end(world);
}

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

TEST_CASE("a closed router refuses what comes and finishes what runs") {
  World world({});
  bring_up(world);
  world.submit(request_of(1));
  world.with_router([&](Router& router) { router.close(world.now()); });
  world.submit(request_of(2));
  CHECK(says(world, 2, "shutting down"));
  run_to_end(world);
  CHECK(world.client(1).last.finish == wire::FinishReason::kLength);
}

TEST_CASE("a replica that comes up small cuts an open length and ends what can never fit") {
  WorldOptions options;
  options.kv_blocks = 4;
  World world(options);
  world.spawn();
  world.run_for(milliseconds(10));
  Request open = request_of(1);
  open.params.max_tokens.reset();
  // 64 positions hold 8 prompt tokens and 57 new ones, the last of which is never fed back. Said
  // here to the client, who would expect the whole context.
  Request as_cut = request_of(1, 8, 57);
  world.submit_expecting(open, as_cut);
  world.submit(request_of(2, 8, 400));
  run_to_end(world);
  CHECK_EQ(world.client(1).tokens.size(), 57);
  CHECK(code_of(world, 2) == StatusCode::kInvalidArgument);
  CHECK(says(world, 2, "can never fit"));
  CHECK(says(world, 2, "maximum context length"));
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

TEST_CASE("an unseeded request draws by its id and the router's seed") {
  WorldOptions options;
  options.router.seed = 5;
  World world(options);
  bring_up(world);
  for (RequestId id = 1; id <= 2; ++id) {
    Request request = request_of(id + 20 * id, 8, 20);
    request.prompt.assign(8, FakeTokenizer::kA);
    request.params.temperature = 1;
    world.submit(request);  // the client expects exactly that seed
  }
  run_to_end(world);
  CHECK(world.client(21).tokens != world.client(42).tokens);
}

TEST_CASE("a prompt of one token that is only scored ends at once") {
  World world({});
  bring_up(world);
  Request request = request_of(1, 1, 0);
  request.params.num_prompt_logprobs = 1;
  world.submit(request);
  CHECK(world.client(1).last.finish == wire::FinishReason::kLength);
  CHECK_EQ(world.client(1).num_scored, 1);
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
