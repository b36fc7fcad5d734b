// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/scheduler/grid.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/random.h"

namespace brigade::bench {

WorldOptions measuring_options(std::uint32_t num_stages, std::int64_t max_context) {
  WorldOptions options;
  options.router.pp_size = num_stages;
  options.router.default_deadline = std::chrono::hours(10);
  options.router.max_queue_delay = std::chrono::hours(10);
  options.router.step_timeout = std::chrono::minutes(10);
  options.models = {router::testing::make_fake_model("fake", max_context)};
  options.kv_blocks = 1 << 14;
  options.audit = false;
  return options;
}

void bring_up(World& world, std::uint32_t num_replicas) {
  for (std::uint32_t i = 0; i < num_replicas * world.options().router.pp_size; ++i)
    world.spawn();
  const auto all_ready = [&] {
    std::uint32_t ready = 0;
    for (const auto& replica : world.router().status().replicas)
      ready += replica.state == "ready" ? 1 : 0;
    return ready == num_replicas;
  };
  INVARIANT(world.run_until(all_ready, std::chrono::seconds(10))) << "the bench's replicas";
}

router::Request make_request(RequestId id, std::string tenant, std::size_t num_prompt,
                             std::uint32_t max_tokens, std::uint64_t seed) {
  router::Request request{.id = id, .tenant = std::move(tenant), .model = "fake"};
  for (std::size_t i = 0; i < num_prompt; ++i) {
    request.prompt.push_back(static_cast<std::int32_t>(random_bits(seed, i) %
                                                       router::testing::FakeTokenizer::kVocabSize));
  }
  request.params.temperature = 0;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  return request;
}

double percentile(std::vector<double> values, double fraction) {
  INVARIANT(!values.empty()) << "nothing was measured";
  std::sort(values.begin(), values.end());
  const auto rank =
      static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

void arrive(World& world, double rate, Duration duration, std::uint64_t seed, RequestId first_id,
            std::function<void(RequestId)> submit) {
  double at = 0;
  for (RequestId id = first_id;; ++id) {
    at -= std::log(1 - random_uniform(seed, id)) / rate;
    if (at >= seconds_of(duration)) return;
    world.after(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(at)),
                [submit, id] { submit(id); });
  }
}

}  // namespace brigade::bench
