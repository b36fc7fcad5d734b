// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <ctime>
#include <limits>
#include <new>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "router/core/router.h"
#include "tests/bench/scheduler/benches.h"
#include "tests/bench/scheduler/table.h"
#include "tests/router/core/support/fake_model.h"

namespace {

std::uint64_t num_allocations = 0;

}  // namespace

// Every allocation of this program is counted.
void* operator new(std::size_t size) {
  ++num_allocations;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace brigade::bench {
namespace {

using router::testing::FakeTokenizer;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A router with one replica of one rank, whose results are made outside the time that is measured.
class Driver final {
 public:
  Driver(std::uint32_t num_running, std::uint64_t num_queued, std::uint32_t max_tokens = 8000)
      : max_tokens_(max_tokens),
        router_(make_config(num_running), {router::testing::make_fake_model("fake", 8192)}) {
    router_.on_message(1,
                       wire::Hello{.schema_hash = "s",
                                   .incarnation = 1,
                                   .host_id = "h",
                                   .memory_bytes = std::uint64_t{1} << 40,
                                   .endpoints = {"ipc://w"}},
                       now_);
    const std::uint64_t epoch = 1;
    router_.on_message(1, wire::Loaded{.epoch = epoch, .max_kv_blocks = 1 << 20}, now_);
    router_.on_message(1, wire::Ready{.epoch = epoch}, now_);
    (void)router_.take_actions();
    INVARIANT(router_.ready()) << "the bench's replica";
    for (std::uint64_t id = 1; id <= num_running + num_queued; ++id)
      router_.submit(request(id), now_);
    collect();
    next_id_ = num_running + num_queued + 1;
    while (router_.status().replicas[0].running < num_running || pending_prefill_)
      step();
  }

  /// One result and what follows from it.
  void step() {
    INVARIANT(!commands_.empty()) << "nothing is planned";
    const wire::StepCommand command = std::move(commands_.front());
    commands_.erase(commands_.begin());
    wire::FromWorker message = result_of(command);
    now_ += std::chrono::milliseconds(10);
    const std::uint64_t allocations = num_allocations;
    const double begin = cpu_seconds();
    router_.on_message(1, std::move(message), now_);
    router::Actions actions = router_.take_actions();
    cpu_seconds_ += cpu_seconds() - begin;
    num_allocations_ += num_allocations - allocations;
    num_sequence_steps_ += command.num_seqs();
    ++num_steps_;
    collect(std::move(actions));
  }

  /// The same, and a new request for each that has ended: its arrival is measured too.
  void step_and_refill() {
    step();
    const std::uint64_t num_open = router_.status().in_flight;
    if (num_wanted_ == 0) num_wanted_ = num_open;
    for (std::uint64_t i = num_open; i < num_wanted_; ++i) {
      router::Request next = request(next_id_++);
      const std::uint64_t allocations = num_allocations;
      const double begin = cpu_seconds();
      router_.submit(std::move(next), now_);
      router::Actions actions = router_.take_actions();
      cpu_seconds_ += cpu_seconds() - begin;
      num_allocations_ += num_allocations - allocations;
      collect(std::move(actions));
    }
  }

  void reset() {
    cpu_seconds_ = 0;
    num_allocations_ = num_steps_ = num_sequence_steps_ = 0;
  }
  [[nodiscard]] double sequence_steps_per_second() const {
    return static_cast<double>(num_sequence_steps_) / cpu_seconds_;
  }
  [[nodiscard]] double us_per_step() const {
    return 1e6 * cpu_seconds_ / static_cast<double>(num_steps_);
  }
  [[nodiscard]] double allocations_per_token() const {
    return static_cast<double>(num_allocations_) / static_cast<double>(num_sequence_steps_);
  }

 private:
  static router::RouterConfig make_config(std::uint32_t num_running) {
    router::RouterConfig config;
    config.max_seqs = num_running;
    config.step_tokens = std::max<std::uint32_t>(num_running, 512);
    config.max_queued_requests = config.max_queued_requests_per_tenant = 1 << 20;
    config.max_queued_tokens = config.max_queued_tokens_per_tenant = std::uint64_t{1} << 40;
    config.max_queue_delay = std::chrono::hours(100);
    config.default_deadline = std::chrono::hours(100);
    return config;
  }

  [[nodiscard]] router::Request request(std::uint64_t id) const {
    router::Request request{.id = id, .tenant = str_cat("t", id % 7), .model = "fake"};
    // A prefix that all share, and 64 tokens of its own.
    request.prompt.assign(64, FakeTokenizer::kA);
    for (std::uint64_t i = 0; i < 64; ++i) {
      request.prompt.push_back(FakeTokenizer::kA +
                               static_cast<std::int32_t>((id >> (i % 16)) % 26));
    }
    request.params.max_tokens = max_tokens_;
    request.params.ignore_eos = true;
    request.params.temperature = 0;
    return request;
  }

  static wire::StepResult result_of(const wire::StepCommand& command) {
    wire::StepResult result{.epoch = command.epoch,
                            .step = command.step,
                            .lane = command.lane,
                            .plan_hash = wire::plan_hash(command),
                            .cu_top = {0}};
    for (std::size_t i = 0; i < command.num_seqs(); ++i) {
      if ((command.flags[i] & wire::kSampleToken) == 0) continue;
      const std::uint32_t count = command.cu_tokens[i + 1] - command.cu_tokens[i];
      result.seq.push_back(command.seq[i]);
      result.position.push_back(command.position[i] + count);
      result.token.push_back(FakeTokenizer::kA);
      result.sampled.push_back(1);
      result.logprob.push_back(std::numeric_limits<float>::quiet_NaN());
      result.cu_top.push_back(0);
    }
    return result;
  }

  void collect() { collect(router_.take_actions()); }
  void collect(router::Actions actions) {
    for (router::SendToWorker& send : actions.sends) {
      if (auto* command = std::get_if<wire::StepCommand>(&send.message)) {
        pending_prefill_ = command->tokens.size() > command->num_seqs();
        commands_.push_back(std::move(*command));
      }
    }
  }

  const std::uint32_t max_tokens_;
  TimePoint now_{std::chrono::seconds(1)};
  router::Router router_;
  std::vector<wire::StepCommand> commands_;
  bool pending_prefill_ = true;
  double cpu_seconds_ = 0;
  std::uint64_t num_allocations_ = 0;
  std::uint64_t num_steps_ = 0;
  std::uint64_t num_sequence_steps_ = 0;
  std::uint64_t next_id_ = 0;
  std::uint64_t num_wanted_ = 0;  ///< requests that are kept open
};

struct Planning {
  double us_per_step = 0;
  double allocations_per_token = 0;
  double sequence_steps_per_second = 0;
};

/// Of nine rounds the fastest: what disturbs a measurement only makes it slower.
Planning measure(Driver& driver, void (Driver::*step)() = &Driver::step) {
  Planning best;
  for (int round = 0; round < 9; ++round) {
    driver.reset();
    for (int i = 0; i < 200; ++i)
      (driver.*step)();
    if (driver.sequence_steps_per_second() < best.sequence_steps_per_second) continue;
    best = {.us_per_step = driver.us_per_step(),
            .allocations_per_token = driver.allocations_per_token(),
            .sequence_steps_per_second = driver.sequence_steps_per_second()};
  }
  return best;
}

}  // namespace

void bench_planning() {
  print_heading("planning (one replica, prefix cache and ledger on)");
  Driver driver(256, 10);
  const Planning base = measure(driver);
  print_row("sequence-steps a second and core, 256 decodes a step", base.sequence_steps_per_second,
            "1/s", Goal::kAtLeast, 3e6);
  print_row("allocations a token (vectors that double, and of a step)", base.allocations_per_token,
            "", Goal::kAtMost, 0.1);
  for (const std::uint32_t batch : {64U, 128U, 512U, 1024U}) {
    Driver other(batch, 10);
    print_row(str_cat("time a sequence in a step of ", batch, ", over that in one of 256"),
              measure(other).us_per_step / batch / (base.us_per_step / 256), "", Goal::kAtMost,
              1.25);
  }
  {
    Driver queued(256, 100'000);
    print_row("time of a step with 100,000 queued over that with 10",
              measure(queued).us_per_step / base.us_per_step, "", Goal::kAtMost, 1.2);
  }
  // With prompts of 128 tokens and outputs of 64 requests end and begin all the time: their
  // arrival, admission, prefix look-up, placement and end are in the figure.
  Driver turning(256, 10, /*max_tokens=*/64);
  const Planning all = measure(turning, &Driver::step_and_refill);
  print_row("sequence-steps a second, requests of 64 tokens beginning and ending",
            all.sequence_steps_per_second, "1/s");
  print_row("allocations a token, those of requests included", all.allocations_per_token);
}

}  // namespace brigade::bench
