// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "router/core/types.h"

namespace brigade::router::testing {

class World;

/// Of tenants that are told apart by their requests' seeds (WorldOptions::tenant_in_seed).
inline constexpr std::uint64_t kMaxSimTenants = 16;

/// A worker process in virtual time: loads, takes steps in order, passes activations on, samples,
/// and reports, as the real one does. Its KV holds a hash of the history up to each position, and
/// each block tells who filled it, how often it has changed hands, and whose tenant's it is. What a
/// worker samples it works out from what it reads there, and each step looks at every block of its
/// sequences: one that was never filled, was given to another, or holds another tenant's tokens
/// ends the process.
class SimWorker final {
 public:
  SimWorker(World& world, WorkerId id, wire::Hello hello);

  /// A message from the router, or anything else that reaches the process.
  void receive(const wire::ToWorker& message);
  void on_activations(std::uint64_t epoch, std::uint64_t step, std::vector<std::int32_t> tokens,
                      std::vector<std::uint64_t> histories);
  void on_sample(std::uint64_t epoch, std::uint64_t step, std::uint32_t slot, std::int32_t token);
  void heartbeat();

  void hang() { hung_ = true; }
  void resume();
  void fail(const std::string& reason);  ///< reports Failed in its epoch

  [[nodiscard]] WorkerId id() const { return id_; }
  [[nodiscard]] const wire::Hello& hello() const { return hello_; }
  [[nodiscard]] bool hung() const { return hung_; }
  [[nodiscard]] bool is_rank(std::uint64_t epoch, std::uint32_t stage, std::uint32_t rank) const {
    return epoch_ == epoch && assign_.pp_stage == stage && assign_.tp_rank == rank;
  }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] Duration busy_time() const { return busy_time_; }

 private:
  struct Slot {
    bool open = false;
    std::uint64_t uid = 0;  ///< of this use of the slot
    std::uint64_t last_step = 0;
    wire::SequenceAdmit params;
    std::vector<std::uint32_t> blocks;
    std::vector<std::uint64_t> fillings;  ///< of each block, as this slot filled or found it
  };
  struct Block {
    std::uint64_t uid = 0;      ///< slot's use that filled it last
    std::uint64_t filling = 0;  ///< counts up each time that another begins to fill it
    std::uint64_t tenant = 0;
  };
  struct Activations {
    std::vector<std::int32_t> tokens;      ///< of the step's rows, samples filled in
    std::vector<std::uint64_t> histories;  ///< [num_seqs]
  };

  void on_assign(const wire::Assign& assign);
  void on_start(const wire::Start& start);
  void on_command(const wire::StepCommand& command);
  void reset();
  [[nodiscard]] bool is_last() const { return assign_.pp_stage + 1 == assign_.stages.size(); }
  [[nodiscard]] bool inputs_are_here(const wire::StepCommand& command) const;
  void try_run();
  void finish_step(wire::StepCommand command);
  void apply_slots(const wire::StepCommand& command);
  std::vector<std::int32_t> resolve(const wire::StepCommand& command);
  [[nodiscard]] std::uint64_t tenant_of(const Slot& slot) const;
  void append_blocks(Slot& slot, std::span<const std::uint32_t> blocks, std::uint32_t position);
  void write_kv(Slot& slot, std::uint32_t position, std::int32_t token);
  void copy_block(std::uint32_t from, std::uint32_t to);
  void check_blocks(const Slot& slot, std::uint32_t num_positions) const;
  [[nodiscard]] std::uint64_t read_history(const Slot& slot, std::uint32_t position) const;
  void report(const wire::StepCommand& command, const Activations& step);
  void add_entry(wire::StepResult& result, const Slot& slot, std::uint32_t position,
                 std::int32_t token, bool sampled) const;

  World& world_;
  WorkerId id_;
  wire::Hello hello_;
  bool hung_ = false;
  std::vector<std::function<void()>> held_;  ///< what came while it hung

  std::uint64_t epoch_ = 0;
  std::uint64_t generation_ = 0;  ///< of the epoch's state: what was begun before a reset is void
  wire::Assign assign_;
  bool ready_ = false;
  bool busy_ = false;
  std::uint64_t last_step_ = 0;
  std::deque<wire::StepCommand> commands_;
  std::map<std::uint64_t, Activations> activations_;                         ///< by step
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::int32_t> samples_;  ///< (step, slot)
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> kv_;  ///< [num_blocks * 16] histories; 0: nothing was written
  std::vector<Block> blocks_;      ///< [num_blocks]
  std::uint64_t next_uid_ = 0;
  Duration busy_time_{0};
  TimePoint free_since_ = TimePoint::min();  ///< when its last step ended
  std::uint32_t wait_us_ = 0;                ///< before the step that runs
};

}  // namespace brigade::router::testing
