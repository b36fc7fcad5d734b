// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "router/core/router.h"
#include "tests/router/core/support/command_checker.h"
#include "tests/router/core/support/fake_model.h"
#include "tests/router/core/support/sim_worker.h"

namespace brigade::router::testing {

/// Random numbers from (seed, stream), so that one more draw in a stream does not shift the others.
class Dice final {
 public:
  Dice(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  [[nodiscard]] std::uint64_t between(std::uint64_t low, std::uint64_t high);  ///< both included
  [[nodiscard]] bool chance(double probability);
  [[nodiscard]] Duration between(Duration low, Duration high);

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t counter_ = 0;
};

struct WorldOptions {
  std::uint64_t seed = 1;
  RouterConfig router;
  std::vector<std::shared_ptr<const ServedModel>> models = {make_fake_model()};
  std::uint64_t kv_blocks = 256;  ///< that each worker says it can hold
  Duration load_time = std::chrono::milliseconds(100);
  Duration heartbeat_period = std::chrono::seconds(1);
  Duration min_link_delay = std::chrono::microseconds(100);  ///< between stages
  Duration max_link_delay = std::chrono::microseconds(100);
  Duration min_router_delay = std::chrono::microseconds(200);  ///< one way
  Duration max_router_delay = std::chrono::microseconds(200);
  Duration step_base = std::chrono::milliseconds(5);
  Duration step_per_token = std::chrono::microseconds(20);
  bool audit = true;            ///< after each event
  Trace::Sink trace = nullptr;  ///< of the router
};

/// What a client has seen of its request, checked as it comes.
struct Client {
  Request request;
  Expected expected;
  std::vector<std::int32_t> tokens;
  std::vector<TimePoint> token_times;
  std::string text;
  std::size_t num_scored = 0;
  bool ended = false;
  Output last;
};

/// The router and its workers in virtual time. One thread, a queue of events ordered by time (then
/// by when they were put in), nothing random but what comes from the seed.
class World final {
 public:
  explicit World(WorldOptions options);

  // Time.
  [[nodiscard]] TimePoint now() const { return now_; }
  void after(Duration delay, std::function<void()> event);
  /// Runs all events up to then.
  void run_for(Duration duration);
  /// Runs until `done` or the time is up; whether it is done.
  bool run_until(const std::function<bool()>& done, Duration limit);

  // Workers.
  WorkerId spawn(const std::string& host = "host");
  void kill(WorkerId worker, Duration until_noticed);
  void leave(WorkerId worker);  ///< its process ends in good order
  SimWorker* find(WorkerId worker);
  [[nodiscard]] std::vector<WorkerId> worker_ids() const;
  void fail_next_loads(std::uint32_t count) { loads_to_fail_ = count; }
  void corrupt_next_result() { corrupt_next_result_ = true; }

  // Clients.
  void submit(Request request);
  /// Sends `request`, and expects what `as` would give.
  void submit_expecting(Request request, const Request& as);
  void cancel(RequestId request);
  [[nodiscard]] Client& client(RequestId id) { return clients_.at(id); }
  [[nodiscard]] const std::map<RequestId, Client>& clients() const { return clients_; }
  [[nodiscard]] bool all_ended() const { return num_open_ == 0; }

  /// Calls the router and does what it says.
  void with_router(const std::function<void(Router&)>& call);
  [[nodiscard]] const Router& router() const { return router_; }
  [[nodiscard]] const WorldOptions& options() const { return options_; }
  /// Over all outputs and sends so far: equal for equal seeds.
  [[nodiscard]] std::uint64_t trace_hash() const { return trace_hash_; }
  [[nodiscard]] std::uint64_t num_events() const { return num_events_; }
  [[nodiscard]] std::size_t max_steps_in_flight() const;

  // For workers.
  void send_to_router(WorkerId worker, wire::FromWorker message);
  void send_activations(std::uint64_t epoch, std::uint32_t stage, std::uint64_t step,
                        std::vector<std::int32_t> tokens, std::vector<std::uint64_t> tails);
  void send_sample(std::uint64_t epoch, std::uint64_t step, std::uint32_t slot, std::int32_t token);
  void compare_plans(const wire::StepCommand& command);
  [[nodiscard]] Duration step_time(std::size_t num_tokens) const;
  [[nodiscard]] bool next_load_fails();

 private:
  struct Event {
    TimePoint time;
    std::uint64_t number = 0;
    std::function<void()> run;
    friend bool operator>(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.number > b.number;
    }
  };
  /// Keeps the order of what goes from one to another.
  using Link = std::pair<std::uint64_t, std::uint64_t>;
  void deliver(Link link, Duration delay, std::function<void()> event);
  void at(TimePoint time, std::function<void()> event);
  bool run_next(TimePoint limit);
  void apply_actions();
  void deliver_to_worker(SendToWorker send);
  void on_output(const Output& output);
  void check_end(const Client& client) const;
  void heartbeats(WorkerId worker);
  void mix(std::uint64_t value);
  SimWorker* find_rank(std::uint64_t epoch, std::uint32_t stage);

  WorldOptions options_;
  TimePoint now_{std::chrono::seconds(1000)};
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t next_event_ = 0;
  std::map<Link, TimePoint> links_;
  Dice network_;
  Router router_;
  std::map<WorkerId, std::unique_ptr<SimWorker>> workers_;
  std::vector<std::unique_ptr<SimWorker>> dead_;      ///< events may still point to them
  std::map<std::uint64_t, CommandChecker> checkers_;  ///< by epoch
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> plan_hashes_;  ///< (epoch, step)
  WorkerId next_worker_ = 1;
  std::map<RequestId, Client> clients_;
  std::size_t num_open_ = 0;
  std::uint32_t loads_to_fail_ = 0;
  bool corrupt_next_result_ = false;
  std::uint64_t trace_hash_ = 0;
  std::uint64_t num_events_ = 0;
};

}  // namespace brigade::router::testing
