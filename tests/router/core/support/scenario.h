// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/router/core/support/world.h"

namespace brigade::router::testing {

/// A minute of random traffic and random faults over a router and its workers, all from one seed:
///
///     A  workers come, and some traffic
///     B  60 s of arrivals, cancels, deadlines, and in most runs faults: workers that die, hang,
///        stop for a while, fail to load or send nonsense, stale results, and drains
///     C  nothing is broken any more: every request ends
///     D  all replicas are drained: every block is back, every worker has left
///
/// The checks are World's; what must hold at the end is in here. Each ends the process when it
/// fails, so that it works in a program of its own as well as in a test.
class Scenario final {
 public:
  /// `start`: when the router's clock begins. `trace`: of its decisions, if any.
  explicit Scenario(std::uint64_t seed, Duration start = std::chrono::seconds(1000),
                    Trace::Sink trace = nullptr);
  void run();

  [[nodiscard]] const World& world() const { return world_; }

 private:
  static WorldOptions make_options(std::uint64_t seed, Dice& dice);
  [[nodiscard]] const WorldOptions& options() const { return world_.options(); }
  [[nodiscard]] std::uint64_t num_ranks() const {
    return std::uint64_t{options().router.tp_size} * options().router.pp_size;
  }

  // traffic
  Request make_request(RequestId id);
  std::vector<std::int32_t> make_prompt(std::uint64_t tenant);
  void choose_ends(wire::GenerationParams& params);
  void submit(RequestId id, std::uint64_t num_choices);
  void schedule_arrivals();

  // faults
  void refill();
  void schedule_drains();
  void schedule_faults();
  void inject();
  void break_something(WorkerId victim);
  void pause(WorkerId worker, Duration duration);
  void drain_one();
  void heal();

  void check_all_is_back() const;
  void drain_all();

  Dice dice_;
  Dice traffic_;
  Dice faults_;
  World world_;
  std::uint64_t target_workers_ = 0;
  Duration faults_begin_{0};
  Duration faults_end_{0};
};

}  // namespace brigade::router::testing
