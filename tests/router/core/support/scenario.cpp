// SPDX-License-Identifier: Apache-2.0
#include "tests/router/core/support/scenario.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace brigade::router::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kTraffic = seconds(60);
constexpr std::uint64_t kNumTenants = 3;

}  // namespace

Scenario::Scenario(std::uint64_t seed, Duration start, Trace::Sink trace)
    : dice_(seed, 1), traffic_(seed, 2), faults_(seed, 3), world_([&] {
        WorldOptions options = make_options(seed, dice_);
        options.start = start;
        options.trace = std::move(trace);
        return options;
      }()) {}

void Scenario::run() {
  target_workers_ = num_ranks() * dice_.between(1, 3) + dice_.below(num_ranks() + 1);
  refill();
  world_.run_for(milliseconds(dice_.between(0, 800)));
  schedule_arrivals();
  if (dice_.chance(0.2)) {
    // It takes until here for the slowest replica to load.
    world_.after(seconds(2), [this] { world_.expect_progress(); });
    schedule_drains();
  } else {
    schedule_faults();
  }
  world_.run_for(kTraffic);
  heal();
  // A replica that failed before waits for its next try.
  INVARIANT(world_.run_until([this] { return world_.router().ready(); }, seconds(60)))
      << "no replica comes back";
  world_.expect_progress();
  INVARIANT(world_.run_until([this] { return world_.all_ended(); }, seconds(400)))
      << "requests are left over";
  INVARIANT(world_.run_until([this] { return world_.router().ready(); }, seconds(60)))
      << "no replica is left";
  world_.run_for(seconds(1));
  check_all_is_back();
  drain_all();
}

WorldOptions Scenario::make_options(std::uint64_t seed, Dice& dice) {
  WorldOptions options;
  options.seed = seed;
  options.tenant_in_seed = true;
  RouterConfig& router = options.router;
  router.tp_size = static_cast<std::uint32_t>(dice.between(1, 2));
  router.pp_size = static_cast<std::uint32_t>(dice.between(1, 4));
  router.step_tokens = static_cast<std::uint32_t>(dice.chance(0.5) ? 256 : dice.between(3, 40));
  router.max_seqs = static_cast<std::uint32_t>(dice.chance(0.5) ? 64 : dice.between(1, 8));
  router.prefix_cache = dice.chance(0.8);
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

std::vector<std::int32_t> Scenario::make_prompt(std::uint64_t tenant) {
  std::vector<std::int32_t> prompt;
  // Some begin like others of their tenant, or of any.
  if (traffic_.chance(0.4)) {
    const std::uint64_t kind = traffic_.below(3) + (traffic_.chance(0.5) ? 10 * tenant : 0);
    const std::uint64_t shared = traffic_.between(8, 100);
    for (std::uint64_t i = 0; i < shared; ++i) {
      prompt.push_back(static_cast<std::int32_t>((7 * kind + i * i) % FakeTokenizer::kVocabSize));
    }
  }
  // Some are no longer than that, or fill their last block to the brim.
  const std::uint64_t odd = prompt.size() % wire::kBlockSize;
  if (!prompt.empty() && traffic_.chance(0.3)) {
    prompt.resize(prompt.size() > odd ? prompt.size() - odd : prompt.size());
    return prompt;
  }
  const std::uint64_t rest = traffic_.between(1, traffic_.chance(0.2) ? 60 : 24);
  for (std::uint64_t i = 0; i < rest; ++i) {
    prompt.push_back(static_cast<std::int32_t>(traffic_.below(FakeTokenizer::kVocabSize)));
  }
  return prompt;
}

void Scenario::choose_ends(wire::GenerationParams& params) {
  params.max_tokens = static_cast<std::uint32_t>(traffic_.between(1, 70));
  if (traffic_.chance(0.3)) params.ignore_eos = true;
  if (traffic_.chance(0.3)) {
    params.min_tokens = static_cast<std::uint32_t>(traffic_.below(*params.max_tokens + 1));
  }
  if (traffic_.chance(0.4)) {
    params.stop = {"ab", "ca", "a" + std::string(1, static_cast<char>('a' + traffic_.below(26)))};
  }
  if (traffic_.chance(0.2)) params.stop_token_ids = {FakeTokenizer::kSpace, 40};
  if (traffic_.chance(0.05)) params.deadline_ms = static_cast<std::uint32_t>(traffic_.below(500));
}

Request Scenario::make_request(RequestId id) {
  const std::uint64_t tenant = traffic_.below(kNumTenants);
  Request request{.id = id, .tenant = "t" + std::to_string(tenant), .model = "fake"};
  request.prompt = make_prompt(tenant);
  wire::GenerationParams& params = request.params;
  choose_ends(params);
  params.temperature = traffic_.chance(0.5) ? 0.0F : 1.0F;
  params.seed = traffic_.below(1000) * kMaxSimTenants + tenant;
  params.priority = traffic_.chance(0.2) ? static_cast<std::int32_t>(traffic_.below(5)) - 2 : 0;
  if (traffic_.chance(0.2)) params.num_logprobs = static_cast<std::int32_t>(traffic_.below(4));
  if (traffic_.chance(0.1)) params.num_prompt_logprobs = 1;
  if (params.num_prompt_logprobs >= 0 && traffic_.chance(0.4)) {
    params.max_tokens = 0;
    params.min_tokens = 0;
  }
  return request;
}

/// Choices of one prompt are requests of one group, apart in nothing but their seeds.
void Scenario::submit(RequestId id, std::uint64_t num_choices) {
  constexpr RequestId kFirstChoice = 1000;
  Request request = make_request(id);
  if (num_choices > 1) {
    request.group = id;
    request.params.temperature = 1;
  }
  for (std::uint64_t i = 0; i < num_choices; ++i) {
    Request choice = request;
    if (i > 0) choice.id = kFirstChoice + id * 10 + i;
    *choice.params.seed += i * kMaxSimTenants;
    world_.submit(std::move(choice));
  }
}

void Scenario::schedule_arrivals() {
  const std::uint64_t count = traffic_.between(40, 120);
  // In most runs they come in a burst, so that they meet each other.
  const Duration burst = traffic_.chance(0.7) ? Duration(milliseconds(traffic_.between(0, 8000)))
                                              : kTraffic - seconds(2);
  const Duration begin = traffic_.between(Duration(0), kTraffic - seconds(1) - burst);
  for (RequestId id = 1; id <= count; ++id) {
    const Duration arrival = begin + traffic_.between(Duration(0), burst);
    const std::uint64_t num_choices = traffic_.chance(0.1) ? traffic_.between(2, 4) : 1;
    world_.after(arrival, [this, id, num_choices] { submit(id, num_choices); });
    if (!traffic_.chance(0.25)) continue;
    const Duration cancel = arrival + milliseconds(traffic_.below(3000));
    world_.after(cancel, [this, id] { world_.cancel(id); });
    if (traffic_.chance(0.2)) world_.after(cancel, [this, id] { world_.cancel(id); });
  }
  // Faults go with the traffic.
  faults_begin_ = begin;
  faults_end_ = std::min(begin + burst + seconds(4), kTraffic - seconds(1));
}

void Scenario::refill() {
  while (world_.worker_ids().size() < target_workers_) {
    world_.spawn(dice_.chance(0.5) ? "a" : "b");
  }
  // TP ranks share a host: make sure that at least one replica can form whatever the split.
  if (options().router.tp_size > 1) world_.spawn("a");
}

/// Where nothing else happens, what a drain does wrong cannot be blamed on a fault.
void Scenario::schedule_drains() {
  const std::uint64_t count = faults_.below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    world_.after(faults_.between(faults_begin_, faults_end_), [this] {
      drain_one();
      world_.after(milliseconds(100), [this] { refill(); });
    });
  }
}

void Scenario::schedule_faults() {
  const std::uint64_t count = faults_.between(1, 12);
  for (std::uint64_t i = 0; i < count; ++i) {
    world_.after(faults_.between(faults_begin_, faults_end_), [this] { inject(); });
  }
}

void Scenario::inject() {
  const std::vector<WorkerId> ids = world_.worker_ids();
  if (ids.empty()) return;
  switch (faults_.below(5)) {
    case 0:
      drain_one();
      break;
    case 1:
      world_.replay_stale_result();
      break;
    default:
      world_.disturb();
      break_something(ids[faults_.below(ids.size())]);
      break;
  }
  if (faults_.chance(0.7)) {
    world_.after(milliseconds(faults_.between(100, 3000)), [this] { refill(); });
  }
  world_.after(milliseconds(faults_.between(100, 6000)), [this] { world_.replay_stale_result(); });
}

void Scenario::break_something(WorkerId victim) {
  switch (faults_.below(7)) {
    case 0:
    case 1:
      world_.note("a worker dies");
      world_.kill(victim, milliseconds(faults_.below(2000)));
      break;
    case 2:
      world_.note("a worker hangs");
      world_.find(victim)->hang();
      break;
    case 3:
      world_.note("a worker stops for a while");
      pause(victim, milliseconds(faults_.between(100, 8000)));
      break;
    case 4:
      world_.note("a rank gives up");
      world_.find(victim)->fail("a collective expired");
      break;
    case 5:
      world_.note("a result is nonsense");
      world_.corrupt_next_result();
      break;
    case 6:
      world_.note("loading fails");
      world_.fail_next_loads(static_cast<std::uint32_t>(faults_.between(1, 3)));
      break;
  }
}

void Scenario::pause(WorkerId worker, Duration duration) {
  world_.find(worker)->hang();
  world_.after(duration, [this, worker] {
    if (SimWorker* sim = world_.find(worker)) sim->resume();
  });
}

void Scenario::drain_one() {
  const std::vector<ReplicaStatus> replicas = world_.router().status().replicas;
  if (!replicas.empty()) world_.drain(replicas[faults_.below(replicas.size())].id);
}

void Scenario::heal() {
  world_.fail_next_loads(0);
  for (const WorkerId id : world_.worker_ids()) {
    if (!world_.find(id)->hung()) continue;
    world_.disturb();
    world_.kill(id, milliseconds(1));
  }
  refill();
  for (std::uint64_t i = 0; i < num_ranks(); ++i)
    world_.spawn("a");
}

void Scenario::check_all_is_back() const {
  const RouterStatus status = world_.router().status();
  INVARIANT_EQ(status.in_flight, 0U);
  INVARIANT_EQ(status.queued_requests, 0U);
  INVARIANT_EQ(status.queued_tokens, 0U);
  INVARIANT_EQ(status.accepted + status.refused, world_.clients().size());
  INVARIANT_EQ(status.accepted, status.completed + status.failed + status.cancelled);
  for (const ReplicaStatus& replica : status.replicas)
    INVARIANT_EQ(replica.kv_used, 0U);
}

void Scenario::drain_all() {
  const auto num_live = [this] {
    const std::vector<ReplicaStatus> replicas = world_.router().status().replicas;
    return std::count_if(replicas.begin(), replicas.end(), [](const ReplicaStatus& replica) {
      return replica.state == "ready" || replica.state == "loading";
    });
  };
  for (int round = 0; round < 8 && num_live() > 0; ++round) {
    for (const ReplicaStatus& replica : world_.router().status().replicas)
      world_.drain(replica.id);
    world_.run_for(seconds(1));
  }
  INVARIANT_EQ(num_live(), 0);
  // Drained workers have left; what stands by still does.
  INVARIANT_EQ(world_.worker_ids().size(), world_.router().status().idle_workers);
}

}  // namespace brigade::router::testing
