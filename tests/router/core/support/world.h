// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <string_view>
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
  /// When the router's clock starts: nothing may depend on it.
  Duration start = std::chrono::seconds(1000);
  /// Seeds tell the tenant: seed % kMaxSimTenants. Workers then check that none reads another's KV.
  bool tenant_in_seed = false;
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
  TimePoint deadline = kNever;
  bool ended = false;
  Output last;
};

/// The router and its workers in virtual time. One thread, a queue of events ordered by time (then
/// by when they were put in), nothing random but what comes from the seed.
///
/// What must hold is checked as it happens, and ends the process when it does not:
/// - every accepted request ends, at its deadline + 5 s at the latest, exactly once (I1, I2);
/// - tokens, text, finish reason and usage are those of an undisturbed run alone, each position
///   once (I3, I4, I5, I9);
/// - blocks are conserved, no step reads one that its sequence did not fill or find, or that is
///   another tenant's (I6, I7, I8: Router::audit, CommandChecker, SimWorker);
/// - steps come in order on every stage, and all ranks are told the same (I11: SimWorker);
/// - what comes from an epoch that is over changes nothing (I12: replay_stale_result);
/// - after a cancel no output comes, and a second one does nothing (I13);
/// - a drain fails no request that was placed, and ends within 60 s (I14);
/// - each message is on its way, delivered, or lost with a dead worker (I15);
/// - while nothing is broken each request starts within a bound (I18: expect_progress);
/// - accepted = completed + failed + cancelled + in flight, once a second (I21).
/// That outcomes depend on the seed alone, and not on the clock (I22, I24), is for the caller to
/// compare: trace_hash().
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
  /// Delivers a result again whose epoch is over, if there is one.
  void replay_stale_result();

  // Operators.
  void drain(ReplicaId replica);
  /// From now on each request must have its first output within 30 s, and 4 s more for each other
  /// that is open, until disturb().
  void expect_progress();
  /// Something is about to break: requests may wait, and drains may fail them.
  void disturb();

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
  /// Tokens in the steps of each epoch.
  [[nodiscard]] std::vector<std::uint64_t> tokens_by_epoch() const;
  /// Counts something that must happen in some run.
  void note(std::string_view what) { ++seen_[what]; }
  [[nodiscard]] const std::map<std::string_view, std::uint64_t>& seen() const { return seen_; }

  // For workers.
  void send_to_router(WorkerId worker, wire::FromWorker message);
  void send_activations(std::uint64_t epoch, std::uint32_t stage, std::uint64_t step,
                        std::vector<std::int32_t> tokens, std::vector<std::uint64_t> histories);
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
  void check_end(const Client& client);
  void note_end(const Client& client);
  void note_step(const wire::StepCommand& command);
  void check_after_event();
  void scrape();
  void start_by(RequestId request);
  void forget_start(RequestId request);
  void heartbeats(WorkerId worker);
  void mix(std::uint64_t value);
  SimWorker* find_rank(std::uint64_t epoch, std::uint32_t stage);

  WorldOptions options_;
  TimePoint now_;
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
  std::set<std::pair<TimePoint, RequestId>> deadlines_;  ///< of open clients
  bool must_progress_ = false;
  std::set<std::pair<TimePoint, RequestId>> starts_;  ///< latest first outputs of open clients
  std::map<RequestId, TimePoint> start_times_;        ///< the same by request
  struct Drain {
    TimePoint since;
    std::set<RequestId> placed;  ///< there when it began
  };
  std::map<ReplicaId, Drain> drains_;  ///< that nothing has disturbed
  TimePoint calm_since_;               ///< what was broken before has been noticed by then
  std::uint64_t num_sent_ = 0;         ///< messages between router and workers
  std::uint64_t num_delivered_ = 0;
  std::uint64_t num_lost_ = 0;  ///< their receiver was dead
  std::uint64_t num_on_way_ = 0;
  std::map<WorkerId, wire::StepResult> last_results_;
  std::map<std::string_view, std::uint64_t> seen_;
  std::uint32_t loads_to_fail_ = 0;
  bool corrupt_next_result_ = false;
  std::uint64_t trace_hash_ = 0;
  std::uint64_t num_events_ = 0;
};

}  // namespace brigade::router::testing
