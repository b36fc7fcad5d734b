// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "tests/bench/scheduler/benches.h"
#include "tests/bench/scheduler/grid.h"
#include "tests/bench/scheduler/table.h"

namespace brigade::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RequestId kFirstLong = 1'000'000;
constexpr std::size_t kShortPrompt = 64;
constexpr std::size_t kLongPrompt = 16'000;
constexpr std::uint32_t kOutput = 64;  ///< of each request under overload

struct Latencies {
  std::vector<double> first_token;  ///< seconds, of those that have one
  std::vector<double> whole;        ///< seconds, of those that completed
  std::uint64_t num_tokens = 0;     ///< of all outputs
  std::uint64_t num_refused = 0;
};

/// Of the requests with ids from `first` up to `last`, given when each was submitted.
Latencies latencies_of(const World& world, const std::map<RequestId, TimePoint>& submitted,
                       RequestId first, RequestId last) {
  Latencies latencies;
  for (const auto& [id, client] : world.clients()) {
    if (id < first || id >= last) continue;
    latencies.num_tokens += client.tokens.size();
    if (client.ended && !client.last.status.ok()) {
      ++latencies.num_refused;
      continue;
    }
    if (client.tokens.empty()) continue;
    latencies.first_token.push_back(seconds_of(client.token_times.front() - submitted.at(id)));
    if (client.ended) {
      latencies.whole.push_back(seconds_of(client.token_times.back() - submitted.at(id)));
    }
  }
  return latencies;
}

struct Mixed {
  Latencies shorts;
  Latencies longs;
};

/// `rate` short requests a second for a minute and, beside them or not, a long one each 4 s.
Mixed run_mixed(double rate, bool with_long, const WorldOptions& options) {
  World world(options);
  bring_up(world, 1);
  std::map<RequestId, TimePoint> submitted;
  const auto submit = [&](RequestId id, std::size_t num_prompt) {
    submitted[id] = world.now();
    world.submit(make_request(id, "t", num_prompt, 16, id));
  };
  arrive(world, rate, seconds(60), 5, 1, [&](RequestId id) { submit(id, kShortPrompt); });
  for (int i = 0; with_long && i < 15; ++i) {
    world.after(seconds(4) * i, [&, i] { submit(kFirstLong + i, kLongPrompt); });
  }
  world.run_for(seconds(60));
  world.run_until([&] { return world.all_ended(); }, seconds(3600));
  return {.shorts = latencies_of(world, submitted, 1, kFirstLong),
          .longs = latencies_of(world, submitted, kFirstLong, ~RequestId{0})};
}

double seconds_of_long_alone(const WorldOptions& options) {
  World world(options);
  bring_up(world, 1);
  const TimePoint begin = world.now();
  world.submit(make_request(kFirstLong, "t", kLongPrompt, 1, 1));
  world.run_until([&] { return world.all_ended(); }, seconds(600));
  return seconds_of(world.now() - begin);
}

/// One replica of the default 256 slots and every limit at its default.
WorldOptions loaded_options() {
  WorldOptions options = measuring_options(1, /*max_context=*/1024);
  const router::RouterConfig defaults;
  options.router.max_queue_delay = defaults.max_queue_delay;
  options.router.overload_calm = defaults.overload_calm;
  options.step_base = milliseconds(10);
  options.step_per_token = microseconds(20);
  return options;
}

struct Load {
  double tokens_a_second = 0;
  double p99 = 0;          ///< seconds, whole requests that came after the onset
  double onset_worst = 0;  ///< seconds, of those that came in it
  double refused = 0;      ///< of all that came after the onset
};

/// The queue becomes as long as it may be, and is worked off.
constexpr Duration kOnset = seconds(60);
constexpr Duration kWindow = seconds(40);

/// Requests of 128 + 64 tokens, `rate` a second; measured after the onset.
Load run_load(double rate, const WorldOptions& options) {
  World world(options);
  bring_up(world, 1);
  std::map<RequestId, TimePoint> submitted;
  RequestId last = 0;
  arrive(world, rate, kOnset + kWindow, 9, 1, [&](RequestId id) {
    submitted[id] = world.now();
    last = id;
    world.submit(make_request(id, "t", 128, kOutput, id));
  });
  world.run_for(kOnset);
  const std::uint64_t before = world.router().status().generated_tokens;
  const RequestId first = last + 1;
  world.run_for(kWindow);
  const std::uint64_t tokens = world.router().status().generated_tokens - before;
  world.run_until([&] { return world.all_ended(); }, seconds(600));
  const Latencies onset = latencies_of(world, submitted, 1, first);
  const Latencies steady = latencies_of(world, submitted, first, ~RequestId{0});
  return {.tokens_a_second = static_cast<double>(tokens) / seconds_of(kWindow),
          .p99 = percentile(steady.whole, 0.99),
          .onset_worst = percentile(onset.whole, 1),
          .refused = static_cast<double>(steady.num_refused) / static_cast<double>(last - first)};
}

/// Tokens a second when there is always more to serve, and room for all of it to wait.
double capacity_of(WorldOptions options) {
  options.router.max_queue_delay = std::chrono::hours(10);
  options.router.max_queued_requests = options.router.max_queued_requests_per_tenant = 1 << 20;
  World world(options);
  bring_up(world, 1);
  for (RequestId id = 1; id <= 8000; ++id)
    world.submit(make_request(id, "t", 128, kOutput, id));
  world.run_for(seconds(5));
  const std::uint64_t before = world.router().status().generated_tokens;
  world.run_for(seconds(20));
  INVARIANT_NE(world.router().status().queued_requests, 0U) << "it is not saturated";
  return static_cast<double>(world.router().status().generated_tokens - before) / 20;
}

}  // namespace

void bench_short_beside_long() {
  print_heading("64-token prompts beside 16,000-token prompts (one replica)");
  WorldOptions options = measuring_options(1, /*max_context=*/20'000);
  options.router.step_tokens = 512;
  options.step_base = milliseconds(10);
  options.step_per_token = microseconds(100);
  const double step = 0.010 + 512 * 100e-6;
  const double long_alone = seconds_of_long_alone(options);
  print_row("time to first token of a long one that is alone", long_alone, "s");
  for (const double rate : {8.0, 30.0}) {
    const Mixed alone = run_mixed(rate, false, options);
    const Mixed beside = run_mixed(rate, true, options);
    const double p99_alone = percentile(alone.shorts.first_token, 0.99);
    const double p99_beside = percentile(beside.shorts.first_token, 0.99);
    print_row(str_cat(rate, " short ones a second: p99 time to first token"), 1e3 * p99_alone,
              "ms");
    print_row("  the same beside a long one each 4 s", 1e3 * p99_beside, "ms");
    print_row("  the difference, in steps of 512 tokens", (p99_beside - p99_alone) / step, "",
              Goal::kAtMost, 2);
    // A third of each step's rows for prompts is the first one's at least.
    print_row("  longest time to first token of a long one, over alone",
              percentile(beside.longs.first_token, 1) / long_alone, "", Goal::kAtMost, 3);
  }
}

void bench_overload() {
  print_heading("overload (one replica, 128 + 64 tokens a request)");
  const WorldOptions options = loaded_options();
  const double capacity = capacity_of(options);
  const Load normal = run_load(0.9 * capacity / kOutput, options);
  const Load over = run_load(4 * capacity / kOutput, options);
  print_row("capacity", capacity, "tokens/s");
  print_row("goodput at 4 x capacity, over capacity", over.tokens_a_second / capacity, "",
            Goal::kAtLeast, 0.97);
  print_row("p99 of accepted requests at 0.9 of capacity", normal.p99, "s");
  print_row("the same at 4 x, over it", over.p99 / normal.p99, "", Goal::kAtMost, 1.2);
  print_row("refused at 0.9 of capacity", 100 * normal.refused, "%");
  print_row("refused at 4 x", 100 * over.refused, "%");
  print_row("longest of those let in before that, over p99 at 0.9", over.onset_worst / normal.p99);
  WorldOptions by_time = options;
  by_time.router.overload_calm = Duration(0);
  print_row("p99 at 4 x over that at 0.9, by max_queue_delay alone",
            run_load(4 * capacity / kOutput, by_time).p99 / normal.p99);
}

}  // namespace brigade::bench
