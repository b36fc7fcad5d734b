// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

#include "common/base/log.h"
#include "tests/router/core/support/world.h"

namespace brigade::router::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Random traffic and random faults over a router and its workers; every check is in World, the
/// workers, the command checker and Router::audit, which end the process.
class Scenario final {
 public:
  explicit Scenario(std::uint64_t seed)
      : dice_(seed, 1), traffic_(seed, 2), faults_(seed, 3), world_(make_options(seed, dice_)) {}

  void run() {
    const std::uint32_t num_ranks = options().router.tp_size * options().router.pp_size;
    const std::uint64_t num_replicas = dice_.between(1, 3);
    target_workers_ = num_ranks * num_replicas + dice_.below(num_ranks + 1);
    refill();
    world_.run_for(milliseconds(dice_.between(0, 800)));
    schedule_arrivals();
    if (!dice_.chance(0.2)) schedule_faults();
    world_.run_for(seconds(12));
    heal();
    REQUIRE(world_.run_until([this] { return world_.all_ended(); }, seconds(400)));
    // A replica that failed before waits for its next try.
    REQUIRE(world_.run_until([this] { return world_.router().ready(); }, seconds(60)));
    world_.run_for(seconds(1));
    check_all_is_back();
    drain_all();
  }

  [[nodiscard]] const World& world() const { return world_; }

 private:
  static WorldOptions make_options(std::uint64_t seed, Dice& dice) {
    WorldOptions options;
    options.seed = seed;
    RouterConfig& router = options.router;
    router.tp_size = static_cast<std::uint32_t>(dice.between(1, 2));
    router.pp_size = static_cast<std::uint32_t>(dice.between(1, 4));
    router.step_tokens = static_cast<std::uint32_t>(dice.chance(0.5) ? 256 : dice.between(3, 40));
    router.max_seqs = static_cast<std::uint32_t>(dice.chance(0.5) ? 64 : dice.between(1, 8));
    router.heartbeat_timeout = seconds(3);
    router.load_timeout = seconds(5);
    router.step_timeout = seconds(4);
    router.max_fail_overs = static_cast<std::uint32_t>(dice.between(0, 6));
    router.max_queued_requests = dice.chance(0.8) ? 1000 : dice.between(1, 20);
    router.bucket_edges = {16, 64};
    router.default_deadline = dice.chance(0.8) ? seconds(300) : seconds(dice.between(2, 20));
    options.kv_blocks = dice.chance(0.4) ? 512 : dice.between(14, 30);
    options.max_link_delay = microseconds(dice.between(100, 3000));
    options.max_router_delay = microseconds(dice.between(200, 5000));
    options.step_base = microseconds(dice.between(200, 8000));
    options.models = {make_fake_model("fake", 256)};
    return options;
  }

  [[nodiscard]] const WorldOptions& options() const { return world_.options(); }

  void refill() {
    while (world_.worker_ids().size() < target_workers_) {
      world_.spawn(dice_.chance(0.5) ? "a" : "b");
    }
    // TP ranks share a host: make sure that at least one replica can form whatever the split.
    if (options().router.tp_size > 1) world_.spawn("a");
  }

  Request make_request(RequestId id) {
    Request request{.id = id, .tenant = "t" + std::to_string(traffic_.below(3)), .model = "fake"};
    const std::uint64_t longest = traffic_.chance(0.2) ? 150 : 24;
    const std::uint64_t num_prompt = traffic_.between(1, longest);
    for (std::uint64_t i = 0; i < num_prompt; ++i) {
      request.prompt.push_back(
          static_cast<std::int32_t>(traffic_.below(FakeTokenizer::kVocabSize)));
    }
    wire::GenerationParams& params = request.params;
    params.max_tokens = static_cast<std::uint32_t>(traffic_.between(1, 70));
    params.temperature = traffic_.chance(0.5) ? 0.0F : 1.0F;
    if (traffic_.chance(0.5)) params.seed = traffic_.below(1000);
    if (traffic_.chance(0.3)) params.ignore_eos = true;
    if (traffic_.chance(0.3)) {
      params.min_tokens = static_cast<std::uint32_t>(traffic_.below(*params.max_tokens + 1));
    }
    if (traffic_.chance(0.4)) params.stop = {"ab", "ca", "a" + std::string(1, pick_letter())};
    if (traffic_.chance(0.2)) params.stop_token_ids = {FakeTokenizer::kSpace, 40};
    if (traffic_.chance(0.2)) params.num_logprobs = static_cast<std::int32_t>(traffic_.below(4));
    if (traffic_.chance(0.2)) params.num_prompt_logprobs = 1;
    if (params.num_prompt_logprobs >= 0 && traffic_.chance(0.4)) {
      params.max_tokens = 0;
      params.min_tokens = 0;
    }
    if (traffic_.chance(0.05)) params.deadline_ms = static_cast<std::uint32_t>(traffic_.below(500));
    return request;
  }

  char pick_letter() { return static_cast<char>('a' + traffic_.below(26)); }

  void schedule_arrivals() {
    const std::uint64_t count = traffic_.between(20, 60);
    const std::uint64_t burst = traffic_.between(0, 8000);
    for (RequestId id = 1; id <= count; ++id) {
      const Duration arrival = milliseconds(traffic_.between(0, burst));
      world_.after(arrival, [this, id] { world_.submit(make_request(id)); });
      if (!traffic_.chance(0.25)) continue;
      world_.after(arrival + milliseconds(traffic_.below(3000)), [this, id] { world_.cancel(id); });
    }
  }

  void schedule_faults() {
    const std::uint64_t count = faults_.between(1, 8);
    for (std::uint64_t i = 0; i < count; ++i) {
      world_.after(milliseconds(faults_.between(0, 10000)), [this] { inject(); });
    }
  }

  void inject() {
    const std::vector<WorkerId> ids = world_.worker_ids();
    if (ids.empty()) return;
    const WorkerId victim = ids[faults_.below(ids.size())];
    switch (faults_.below(8)) {
      case 0:
      case 1:
        world_.kill(victim, milliseconds(faults_.below(2000)));
        break;
      case 2:
        world_.find(victim)->hang();
        break;
      case 3:
        pause(victim, milliseconds(faults_.between(100, 8000)));
        break;
      case 4:
        world_.find(victim)->fail("a collective expired");
        break;
      case 5:
        world_.corrupt_next_result();
        break;
      case 6:
        world_.fail_next_loads(static_cast<std::uint32_t>(faults_.between(1, 3)));
        break;
      case 7:
        drain_one();
        break;
    }
    if (faults_.chance(0.7)) {
      world_.after(milliseconds(faults_.between(100, 3000)), [this] { refill(); });
    }
  }

  void pause(WorkerId worker, Duration duration) {
    world_.find(worker)->hang();
    world_.after(duration, [this, worker] {
      if (SimWorker* sim = world_.find(worker)) sim->resume();
    });
  }

  void drain_one() {
    const std::vector<ReplicaStatus> replicas = world_.router().status().replicas;
    if (replicas.empty()) return;
    const ReplicaId id = replicas[faults_.below(replicas.size())].id;
    world_.with_router([&](Router& router) { (void)router.drain(id, world_.now()); });
  }

  void heal() {
    world_.fail_next_loads(0);
    for (const WorkerId id : world_.worker_ids()) {
      if (world_.find(id)->hung()) world_.kill(id, milliseconds(1));
    }
    refill();
    for (std::uint32_t i = 0; i < options().router.tp_size * options().router.pp_size; ++i) {
      world_.spawn("a");
    }
  }

  void check_all_is_back() {
    const RouterStatus status = world_.router().status();
    CHECK_EQ(status.in_flight, 0);
    CHECK_EQ(status.queued_requests, 0);
    CHECK_EQ(status.queued_tokens, 0);
    CHECK_EQ(status.accepted + status.refused, world_.clients().size());
    CHECK_EQ(status.accepted, status.completed + status.failed + status.cancelled);
    for (const ReplicaStatus& replica : status.replicas)
      CHECK_EQ(replica.kv_used, 0);
  }

  void drain_all() {
    const auto num_ready = [this] {
      std::size_t count = 0;
      for (const ReplicaStatus& replica : world_.router().status().replicas) {
        count += replica.state == "ready" || replica.state == "loading" ? 1 : 0;
      }
      return count;
    };
    for (int round = 0; round < 8 && num_ready() > 0; ++round) {
      for (const ReplicaStatus& replica : world_.router().status().replicas) {
        world_.with_router([&](Router& router) { (void)router.drain(replica.id, world_.now()); });
      }
      world_.run_for(seconds(1));
    }
    CHECK_EQ(num_ready(), 0);
    // Drained workers have left; what stands by still does.
    const RouterStatus status = world_.router().status();
    CHECK_EQ(world_.worker_ids().size(), status.idle_workers);
  }

  Dice dice_;
  Dice traffic_;
  Dice faults_;
  World world_;
  std::uint64_t target_workers_ = 0;
};

std::uint64_t from_env(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("no request is lost, repeated or changed under random traffic and faults") {
  init_log("sim", LogLevel::kError);
  const std::uint64_t first = from_env("BRIGADE_SIM_SEED", 1);
  const std::uint64_t count = from_env("BRIGADE_SIM_SEEDS", 250);
  std::uint64_t num_events = 0;
  std::map<std::string, std::uint64_t> seen;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    // Printed before the run: a broken invariant ends the process.
    std::cerr << "\rsimulation seed " << seed << ' ' << std::flush;
    Scenario scenario(seed);
    scenario.run();
    num_events += scenario.world().num_events();
    seen["preempted"] += scenario.world().router().status().preempted;
    seen["failed over"] += scenario.world().router().status().failed_over;
    for (const auto& [id, client] : scenario.world().clients()) {
      if (client.last.finish == wire::FinishReason::kStop) ++seen["stop"];
      if (client.last.finish == wire::FinishReason::kLength) ++seen["length"];
      if (client.last.finish == wire::FinishReason::kCancelled) ++seen["cancelled"];
      if (!client.last.status.ok()) ++seen[std::string(to_string(client.last.status.code()))];
    }
  }
  std::cerr << "\n";
  for (const auto& [what, times] : seen)
    MESSAGE(what, ": ", times);
  MESSAGE(num_events, " events");
  if (count < 100) return;
  for (const char* what : {"stop", "length", "cancelled", "unavailable", "deadline exceeded",
                           "preempted", "failed over"}) {
    CHECK_GT(seen[what], 0);
  }
}

TEST_CASE("the same seed gives the same trace") {
  init_log("sim", LogLevel::kError);
  for (std::uint64_t seed = 9001; seed <= 9008; ++seed) {
    Scenario once(seed);
    once.run();
    Scenario again(seed);
    again.run();
    CHECK_EQ(once.world().trace_hash(), again.world().trace_hash());
    CHECK_EQ(once.world().num_events(), again.world().num_events());
  }
}

}  // namespace brigade::router::testing
