// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "common/base/strings.h"
#include "tests/bench/scheduler/benches.h"
#include "tests/bench/scheduler/grid.h"
#include "tests/bench/scheduler/table.h"

namespace brigade::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

WorldOptions equal_stages(std::uint32_t num_stages, Duration result_delay, Duration link_delay) {
  WorldOptions options = measuring_options(num_stages, /*max_context=*/4096);
  options.step_base = milliseconds(1);
  options.step_per_token = Duration(0);
  options.min_router_delay = options.max_router_delay = result_delay;
  options.min_link_delay = options.max_link_delay = link_delay;
  return options;
}

/// Of the window, the part in which the least busy stage computed.
double least_busy(World& world, Duration window) {
  std::map<router::WorkerId, Duration> before;
  for (const router::WorkerId id : world.worker_ids())
    before[id] = world.find(id)->busy_time();
  world.run_for(window);
  double least = 1;
  for (const router::WorkerId id : world.worker_ids())
    least = std::min(
        least, (world.find(id)->busy_time() - before[id]) / std::chrono::duration<double>(window));
  return least;
}

double busy_at_saturation(const WorldOptions& options) {
  World world(options);
  bring_up(world, 1);
  for (RequestId id = 1; id <= 128; ++id)
    world.submit(make_request(id, "t", 16 + id % 32, 3000, id));
  world.run_for(seconds(1));
  return least_busy(world, seconds(1));
}

double seconds_a_token_alone(const WorldOptions& options) {
  constexpr std::uint32_t kTokens = 400;
  constexpr std::uint32_t kLearning = 50;  ///< until the way to the router has been measured
  World world(options);
  bring_up(world, 1);
  world.submit(make_request(1, "t", 8, kTokens, 1));
  world.run_until([&] { return world.all_ended(); }, seconds(60));
  const std::vector<TimePoint>& times = world.client(1).token_times;
  return seconds_of(times.back() - times[kLearning]) / (kTokens - 1 - kLearning);
}

}  // namespace

void bench_pipelines() {
  print_heading("pipelines of equal stages, 1 ms a step");
  for (const std::uint32_t num_stages : {2U, 4U, 8U}) {
    for (const int result_ms : {0, 1, 5}) {
      for (const int link_ms : {0, 2}) {
        const WorldOptions options =
            equal_stages(num_stages, milliseconds(result_ms), milliseconds(link_ms));
        print_row(str_cat(num_stages, " stages, results ", result_ms, " ms late, links ", link_ms,
                          " ms: least busy"),
                  busy_at_saturation(options), "", Goal::kAtLeast, 0.95);
      }
    }
  }
  for (const std::uint32_t num_stages : {2U, 4U, 8U}) {
    for (const int link_ms : {0, 2}) {
      const WorldOptions options = equal_stages(num_stages, milliseconds(5), milliseconds(link_ms));
      // As many links as stages: the last sample goes to the first stage by one, too.
      const double stages_and_links = 1e-3 * (1 + link_ms) * num_stages;
      print_row(str_cat(num_stages, " stages, results 5 ms late, links ", link_ms,
                        " ms, one request: a token"),
                1e3 * seconds_a_token_alone(options), "ms", Goal::kAtMost,
                1.05e3 * stages_and_links);
    }
  }
}

}  // namespace brigade::bench
