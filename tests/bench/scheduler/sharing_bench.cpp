// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/bench/scheduler/benches.h"
#include "tests/bench/scheduler/grid.h"
#include "tests/bench/scheduler/table.h"

namespace brigade::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kShared = 1000;
constexpr std::uint32_t kPrompt = 200;
constexpr std::uint32_t kOutput = 50;
constexpr RequestId kFirstSmall = 1'000'000;

/// Tokens of work that each of two tenants has had: prompts that were computed, and outputs.
struct Service {
  double small = 0;
  double large = 0;
};

Service service_of(const World& world) {
  Service service;
  for (const auto& [id, client] : world.clients()) {
    if (client.tokens.empty()) continue;
    (id >= kFirstSmall ? service.small : service.large) +=
        static_cast<double>(client.tokens.size() + client.request.prompt.size());
  }
  return service;
}

WorldOptions tenants_options() {
  WorldOptions options = measuring_options(1, 1024);
  options.router.max_seqs = 16;
  options.step_base = milliseconds(10);
  return options;
}

/// Both have requests waiting all the time: 6,000 of the one, 60 of the other, all at once.
void bench_backlog() {
  const WorldOptions options = tenants_options();
  World world(options);
  bring_up(world, 1);
  for (RequestId id = 1; id <= 6000; ++id)
    world.submit(make_request(id, "large", kPrompt, kOutput, id));
  for (RequestId id = kFirstSmall; id < kFirstSmall + 60; ++id)
    world.submit(make_request(id, "small", kPrompt, kOutput, id));
  double widest = 0;
  const Service start = service_of(world);
  const auto small_waits = [&] {
    const auto views = world.router().requests();
    return std::any_of(views.begin(), views.end(),
                       [](const auto& view) { return view.id >= kFirstSmall && !view.placed; });
  };
  while (small_waits()) {
    world.run_for(milliseconds(200));
    const Service now = service_of(world);
    widest = std::max(widest, std::abs((now.small - start.small) - (now.large - start.large)));
  }
  const Service end = service_of(world);
  // VTC (OSDI'24): two times the larger of a request's tokens and of those that run together.
  const double bound = 2.0 * options.router.max_seqs * (kPrompt + kOutput);
  print_row("both backlogged: widest gap in service", widest, "tokens", Goal::kAtMost, bound);
  print_row("  the small one's service over the large one's",
            (end.small - start.small) / (end.large - start.large), "", Goal::kAtLeast, 0.9);
}

struct SmallTenant {
  double p99 = 0;  ///< seconds, whole requests
  double served = 0;
};

/// The small tenant sends a quarter of what the replica can do, the large one 100 times as much.
SmallTenant run_small_tenant(bool with_large) {
  constexpr double kRate = 7;  // 16 slots, 0.57 s each: 28 requests a second
  WorldOptions options = tenants_options();
  const router::RouterConfig defaults;
  options.router.max_queue_delay = defaults.max_queue_delay;
  options.router.overload_calm = defaults.overload_calm;
  World world(options);
  bring_up(world, 1);
  std::map<RequestId, TimePoint> submitted;
  arrive(world, kRate, seconds(30), 1, kFirstSmall, [&](RequestId id) {
    submitted[id] = world.now();
    world.submit(make_request(id, "small", kPrompt, kOutput, id));
  });
  if (with_large) {
    arrive(world, 100 * kRate, seconds(30), 2, 1,
           [&](RequestId id) { world.submit(make_request(id, "large", kPrompt, kOutput, id)); });
  }
  world.run_for(seconds(30));
  world.run_until([&] { return world.all_ended(); }, seconds(600));
  std::vector<double> times;
  for (const auto& [id, time] : submitted) {
    const router::testing::Client& client = world.client(id);
    if (client.last.status.ok()) times.push_back(seconds_of(client.token_times.back() - time));
  }
  return {.p99 = percentile(times, 0.99),
          .served = static_cast<double>(times.size()) / static_cast<double>(submitted.size())};
}

}  // namespace

void bench_tenants() {
  print_heading("two tenants, one with 100 times the other's load (one replica)");
  bench_backlog();
  const SmallTenant alone = run_small_tenant(false);
  const SmallTenant beside = run_small_tenant(true);
  print_row("the small one at 1/4 of capacity: part that is served", beside.served, "",
            Goal::kAtLeast, 1);
  print_row("  its p99 latency over that when it is alone", beside.p99 / alone.p99);
}

void bench_shared_prefixes() {
  print_heading("8 replicas, 80 % of the prompts share 1,000 tokens");
  WorldOptions options = measuring_options(1, 4096);
  options.step_base = milliseconds(10);
  options.step_per_token = microseconds(50);
  options.kv_blocks = 4096;
  World world(options);
  bring_up(world, 8);
  const std::vector<std::int32_t> prefix = make_request(0, "t", kShared, 1, 77).prompt;
  std::set<RequestId> sharing;
  arrive(world, 100, seconds(30), 3, 1, [&](RequestId id) {
    router::Request request = make_request(id, "t", 100, 40, id);
    if (id % 5 != 0) {
      request.prompt.insert(request.prompt.begin(), prefix.begin(), prefix.end());
      sharing.insert(id);
    }
    world.submit(std::move(request));
  });
  world.run_for(seconds(30));
  world.run_until([&] { return world.all_ended(); }, seconds(600));
  double hits = 0;
  for (const RequestId id : sharing)
    hits += world.client(id).last.usage.cached_tokens;
  // All but the first of all: whole blocks only.
  const double oracle = static_cast<double>(sharing.size() - 1) *
                        static_cast<double>(kShared / wire::kBlockSize * wire::kBlockSize);
  print_row("cached tokens over those of an oracle", hits / oracle, "", Goal::kAtLeast, 0.95);
  const std::vector<std::uint64_t> tokens = world.tokens_by_epoch();
  double total = 0;
  for (const std::uint64_t count : tokens)
    total += static_cast<double>(count);
  const double mean = total / static_cast<double>(tokens.size());
  print_row("tokens of the busiest replica over the mean",
            static_cast<double>(*std::max_element(tokens.begin(), tokens.end())) / mean, "",
            Goal::kAtMost, 1.2);
}

}  // namespace brigade::bench
