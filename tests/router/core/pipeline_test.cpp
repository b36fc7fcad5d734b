// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/router/core/support/world.h"

namespace brigade::router::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Request request_of(RequestId id, std::size_t num_prompt, std::uint32_t max_tokens) {
  Request request{.id = id, .tenant = "t", .model = "fake"};
  for (std::size_t i = 0; i < num_prompt; ++i) {
    request.prompt.push_back(FakeTokenizer::kA + static_cast<std::int32_t>((id + i) % 26));
  }
  request.params.temperature = 0;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  return request;
}

WorldOptions pipeline(std::uint32_t num_stages) {
  WorldOptions options;
  options.router.pp_size = num_stages;
  options.router.default_deadline = seconds(3600);
  options.kv_blocks = 4096;
  options.audit = false;
  return options;
}

void bring_up(World& world, std::uint32_t num_workers) {
  for (std::uint32_t i = 0; i < num_workers; ++i)
    world.spawn();
  REQUIRE(world.run_until([&] { return world.router().ready(); }, seconds(10)));
}

/// Of the time from `begin` on that each stage computed, the least.
double least_busy(World& world, Duration window) {
  std::map<WorkerId, Duration> before;
  for (const WorkerId id : world.worker_ids())
    before[id] = world.find(id)->busy_time();
  world.run_for(window);
  double least = 1;
  for (const WorkerId id : world.worker_ids()) {
    const Duration busy = world.find(id)->busy_time() - before[id];
    least = std::min(least, std::chrono::duration<double>(busy) / window);
  }
  return least;
}

}  // namespace

TEST_CASE(
    "a lone request decodes at the pace of stages and links, whatever the way to the router") {
  for (const std::uint32_t num_stages : {1U, 2U, 3U, 6U}) {
    WorldOptions options = pipeline(num_stages);
    options.step_base = milliseconds(5);
    options.step_per_token = Duration(0);
    options.min_link_delay = options.max_link_delay = microseconds(300);
    options.min_router_delay = options.max_router_delay = milliseconds(2);
    World world(options);
    bring_up(world, num_stages);
    const TimePoint begin = world.now();
    world.submit(request_of(1, 8, 64));
    REQUIRE(world.run_until([&] { return world.all_ended(); }, seconds(60)));
    const std::vector<TimePoint>& times = world.client(1).token_times;
    REQUIRE_EQ(times.size(), 64);
    const Duration links = microseconds(300) * (num_stages == 1 ? 0 : num_stages - 1);
    const Duration pass = milliseconds(5) * num_stages + links;
    CHECK_EQ(times[0] - begin, pass + milliseconds(4));
    // The sampled token goes from the last stage to the first by one more link, where these are
    // two.
    const Duration pace = pass + (num_stages == 1 ? Duration(0) : Duration(microseconds(300)));
    for (std::size_t i = 1; i < times.size(); ++i)
      CHECK_EQ(times[i] - times[i - 1], pace);
  }
}

TEST_CASE("equal stages stay busy at saturation though links take 1 to 2 ms") {
  for (const std::uint32_t num_stages : {2U, 4U, 6U}) {
    WorldOptions options = pipeline(num_stages);
    options.step_base = milliseconds(40);
    options.step_per_token = microseconds(20);
    options.min_link_delay = milliseconds(1);
    options.max_link_delay = milliseconds(2);
    options.min_router_delay = milliseconds(1);
    options.max_router_delay = milliseconds(2);
    World world(options);
    bring_up(world, num_stages);
    for (RequestId id = 1; id <= 64; ++id)
      world.submit(request_of(id, 20 + id % 13, 400));
    world.run_for(seconds(3));
    const double busy = least_busy(world, seconds(10));
    MESSAGE(num_stages, " stages: ", busy);
    CHECK_GE(busy, 0.95);
  }
}

TEST_CASE("stages of 1 ms stay busy though links take 2 ms and results 5 ms") {
  for (const std::uint32_t num_stages : {2U, 4U, 8U}) {
    WorldOptions options = pipeline(num_stages);
    options.step_base = milliseconds(1);
    options.step_per_token = Duration(0);
    options.min_link_delay = options.max_link_delay = milliseconds(2);
    options.min_router_delay = options.max_router_delay = milliseconds(5);
    options.models = {make_fake_model("fake", 4096)};
    options.kv_blocks = 16384;
    options.audit = false;
    World world(options);
    bring_up(world, num_stages);
    for (RequestId id = 1; id <= 64; ++id)
      world.submit(request_of(id, 20 + id % 13, 4000));
    world.run_for(seconds(2));
    const double busy = least_busy(world, seconds(2));
    MESSAGE(num_stages, " stages: ", busy);
    CHECK_GE(busy, 0.95);
  }
}

TEST_CASE("the chunks of one long prompt fill all stages") {
  WorldOptions options = pipeline(4);
  options.router.step_tokens = 64;
  options.models = {make_fake_model("fake", 4096)};
  options.step_base = milliseconds(5);
  options.step_per_token = microseconds(100);
  World world(options);
  bring_up(world, 4);
  const TimePoint begin = world.now();
  world.submit(request_of(1, 1600, 1));
  REQUIRE(world.run_until([&] { return world.all_ended(); }, seconds(60)));
  CHECK_GE(world.max_steps_in_flight(), 4);
  // 25 chunks of 64 tokens, 11.4 ms each: (25 + 3) of them one after another in four stages, not 4
  // x 25.
  const double chunks =
      std::chrono::duration<double>(world.now() - begin) / std::chrono::duration<double>(0.0114);
  CHECK_LT(chunks, 30);
}

TEST_CASE("lanes that joined one after the other take turns") {
  // A lane that issued two dependent steps in a row would hold up all others behind its second one.
  WorldOptions options = pipeline(4);
  options.step_base = milliseconds(10);
  options.step_per_token = Duration(0);
  World world(options);
  bring_up(world, 4);
  for (RequestId id = 1; id <= 4; ++id) {
    world.submit(request_of(id, 4, 400));
    world.run_for(milliseconds(137));
  }
  world.run_for(milliseconds(500));
  CHECK_GE(least_busy(world, seconds(2)), 0.95);
}

TEST_CASE("sequences left in one lane spread over the others") {
  WorldOptions options = pipeline(2);
  options.step_base = milliseconds(10);
  options.step_per_token = Duration(0);
  World world(options);
  bring_up(world, 2);
  // Admitted in turn to two lanes: the even ones end early.
  for (RequestId id = 1; id <= 8; ++id)
    world.submit(request_of(id, 4, id % 2 == 0 ? 20 : 400));
  world.run_for(seconds(2));
  CHECK_GE(least_busy(world, seconds(2)), 0.95);
}

TEST_CASE("a new request's prompt starts at once beside one that decodes") {
  WorldOptions options = pipeline(2);
  options.step_base = milliseconds(10);
  options.step_per_token = Duration(0);
  World world(options);
  bring_up(world, 2);
  world.submit(request_of(1, 4, 300));
  world.run_for(seconds(1));
  const TimePoint begin = world.now();
  world.submit(request_of(2, 4, 10));
  REQUIRE(world.run_until([&] { return !world.client(2).tokens.empty(); }, seconds(5)));
  // Its own pass of two stages, behind at most one step that was under way and one that waits for
  // its sample.
  CHECK_LE(world.now() - begin, milliseconds(45));
}

}  // namespace brigade::router::testing
