// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "router/core/block_pool.h"
#include "router/core/id_set.h"
#include "router/core/lane_tuner.h"
#include "router/core/sequence.h"
#include "router/core/step_cost.h"
#include "router/core/types.h"

namespace brigade::router {

/// What a result brings, as it is applied. The sink may remove() any request from the replica
/// meanwhile.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  /// request.prompt_scores is complete. Comes before the first sampled token.
  virtual void on_prompt_scored(LiveRequest& request) = 0;
  virtual void on_sampled(LiveRequest& request, wire::OutputToken token) = 0;
  /// No token could be drawn, or the prompt not be scored: the request must end.
  virtual void on_fault(LiveRequest& request, Status status) = 0;
};

/// The plan of one replica in one epoch: its slots, KV blocks, lanes, and the steps in flight.
///
/// A sequence is in one lane from its first decode on; P stages have P lanes (more where the
/// LaneTuner finds that it pays). A lane has at most two steps of decodes in flight: the second is
/// issued before the first one's tokens are back (kTokenFromSample), which hides the router's round
/// trip (again more where the LaneTuner finds that two do not). Ranks run steps in order, and a
/// step that waits for a sample holds up those behind it; so lanes take turns, and only a lane that
/// has nothing in flight may come out of turn:
///
// clang-format off
///     stage 0   |a1|b1|c1|a2|b2|c2|a3|
///     stage 1      |a1|b1|c1|a2|b2|c2|
///     stage 2         |a1|b1|c1|a2|b2|c2|
///
/// a2 needs the tokens of a1, which stage 2 has just drawn. Prompts wait in one line for all lanes:
/// each step takes chunks of them up to the load that makes all lanes' steps equal.
// clang-format on
class Replica final {
 public:
  struct Options {
    ReplicaId id = 0;
    std::size_t model_index = 0;
    std::uint64_t epoch = 0;
    std::uint32_t pp_size = 1;
    std::uint64_t num_blocks = 0;
    std::uint32_t step_tokens = 256;
    std::uint32_t max_seqs = 256;
    std::int64_t vocab_size = 0;
    bool prefix_cache = true;  ///< blocks outlive their requests
  };
  explicit Replica(const Options& options);

  [[nodiscard]] const Options& options() const { return options_; }

  /// Whether the request fits when it is alone here.
  [[nodiscard]] bool can_ever_hold(const LiveRequest& request) const;
  /// Leading tokens of the request that need not be computed here: their blocks are there, or will
  /// be before it could compute them. Needs the request's chain to reach over its tokens.
  [[nodiscard]] std::uint32_t cached_prefix(const LiveRequest& request) const;
  /// Whether it can start now: a slot, blocks for what it has and one token more (and some to spare
  /// for those that run, else they would be preempted at once), and not more prefill waiting than
  /// one step of each lane.
  [[nodiscard]] bool can_take(const LiveRequest& request) const {
    return why_not(request) == WaitReason::kNothing;
  }
  /// What it lacks here, if anything.
  [[nodiscard]] WaitReason why_not(const LiveRequest& request) const;
  /// Whether it lacks blocks, whatever else.
  [[nodiscard]] bool lacks_kv(const LiveRequest& request) const;
  /// Requires can_take(). Sets request.slot.
  void admit(LiveRequest& request);
  /// The request ended or goes elsewhere: its steps in flight are ignored, and its blocks and slot
  /// come back when they have ended.
  void remove(std::uint32_t slot, RequestId request);

  /// The next step to send to every rank; false when there is none now. Call until false after each
  /// event.
  [[nodiscard]] bool plan(TimePoint now, wire::StepCommand& command);
  /// Requests that plan() took off the replica because KV ran out; they go back to the queue.
  [[nodiscard]] std::vector<LiveRequest*> take_preempted();

  /// Applies a result. An error says what does not match what is in flight: the replica must then
  /// be torn down, and nothing of the result was applied.
  Status on_result(const wire::StepResult& result, TimePoint now, ResultSink& sink);

  /// Since when the oldest result is owed; kNever without a step in flight.
  [[nodiscard]] TimePoint owed_since() const;
  [[nodiscard]] std::size_t num_steps_in_flight() const { return flight_.size(); }
  [[nodiscard]] std::uint64_t num_steps() const { return num_steps_ended_; }
  [[nodiscard]] std::uint32_t num_requests() const { return num_requests_; }
  [[nodiscard]] std::vector<LiveRequest*> requests() const;
  /// Tokens of work that were placed here and are not done, outputs as expected.
  [[nodiscard]] std::uint64_t load_tokens() const { return prefill_backlog_ + expected_output_; }
  [[nodiscard]] const BlockPool& blocks() const { return pool_; }

  /// Every block in one state with as many holders as sequences have it (in pools of a few
  /// thousand), counts that add up.
  void audit() const;
  /// The same over all blocks however many, and that no one holds one. Nothing may run here.
  void audit_idle() const;
  /// audit_idle() after something ran and nothing does, at most once in some seconds: for release
  /// builds.
  void audit_when_idle(TimePoint now);

 private:
  static constexpr std::uint32_t kMaxLaneSteps = 2;  ///< unless there are few lanes

  struct Lane {
    std::vector<std::uint32_t> slots;  ///< of its sequences, in the order in which they joined
    std::uint64_t cost = 0;            ///< of these together
    std::uint32_t in_flight = 0;       ///< steps
    std::size_t cursor = 0;  ///< where decodes start, when they are more than a step's budget
  };

  // replica.cpp: who is here
  void detach(Sequence& sequence);
  void close(std::uint32_t slot);

  // replica_plan.cpp: what runs next
  [[nodiscard]] bool can_prefill(const Sequence& sequence) const {
    return sequence.can_prefill() && !waits_for_prefix(sequence);
  }
  [[nodiscard]] bool has_prompt() const;
  [[nodiscard]] bool has_decode(const Lane& lane) const;
  [[nodiscard]] bool is_full(const Lane& lane) const {
    return lane.in_flight >= kMaxLaneSteps && flight_.size() >= tuner_.num_steps_ahead();
  }
  [[nodiscard]] bool build(std::uint32_t lane, TimePoint now, wire::StepCommand& command);
  void add_decodes(Lane& lane, class StepBuilder& builder, std::uint32_t& budget);
  [[nodiscard]] std::uint32_t prefill_budget(const Lane& lane, std::uint32_t room) const;
  void add_prefills(std::uint32_t lane, class StepBuilder& builder, std::uint32_t budget);
  std::uint32_t add_chunk(std::uint32_t lane, std::uint32_t slot, class StepBuilder& builder,
                          std::uint32_t budget);

  // replica_lanes.cpp: which lane
  [[nodiscard]] std::uint32_t num_lanes() const {
    return static_cast<std::uint32_t>(lane_order_.size());
  }
  void set_num_lanes(std::uint32_t num_lanes);
  [[nodiscard]] std::uint32_t lightest_lane() const;
  [[nodiscard]] bool may_join(const Lane& lane, const Sequence& sequence) const;
  void join_lane(std::uint32_t lane, std::uint32_t slot);
  void leave_lane(std::uint32_t slot);
  void move(std::uint32_t slot, std::uint32_t lane);
  void rebalance();
  void tune_lanes(const wire::StepResult& result, TimePoint now);

  // replica_blocks.cpp: whose blocks, and where from
  template <typename OnHit>
  void match_prefix(const LiveRequest& request, OnHit on_hit) const;
  void attach_blocks(Sequence& sequence);
  [[nodiscard]] std::uint64_t blocks_to_start(const LiveRequest& request) const;
  [[nodiscard]] std::uint64_t prefill_ahead(std::uint64_t num_tokens) const;
  [[nodiscard]] bool waits_for_prefix(const Sequence& sequence) const;
  void note_filled(Sequence& sequence);
  void detach_blocks(Sequence& sequence);
  void take_over(Sequence& sequence);
  void find_blocks(Lane& lane);
  bool find_block(Sequence& sequence);
  void preempt(Sequence& victim);
  [[nodiscard]] Sequence& youngest();
  void audit_holders() const;

  // replica_forks.cpp: choices of one prompt
  void join_group(Sequence& sequence);
  void leave_group(Sequence& sequence);
  void lead_group(Fork& fork, Sequence& sequence);
  void drop_block(Fork& fork);

  // replica_results.cpp
  Status check_result(const wire::StepResult& result) const;
  void apply_entries(const wire::StepResult& result, const FlightStep& flight, ResultSink& sink);

  Options options_;
  BlockPool pool_;
  IdSet free_slots_;
  std::vector<Sequence> sequences_;        ///< [max_seqs]
  std::vector<std::uint32_t> prefills_;    ///< slots in no lane yet, in order of admission
  std::vector<Lane> lanes_;                ///< those in lane_order_, and such as were
  std::vector<std::uint32_t> lane_order_;  ///< whose turn it is: least recently issued first
  LaneTuner tuner_;
  StepCost step_cost_;
  std::map<std::uint64_t, Fork> forks_;    ///< by group
  std::deque<FlightStep> flight_;          ///< in order of steps
  std::vector<FlightStep> spare_flights_;  ///< keep their vectors
  std::vector<std::uint32_t> release_;     ///< slots that the next command releases
  std::vector<std::uint32_t> scratch_;
  std::vector<LiveRequest*> preempted_;
  std::uint64_t last_step_ = 0;
  std::uint64_t num_steps_ended_ = 0;
  std::uint64_t audited_steps_ = 0;  ///< steps that had ended at the last idle audit
  TimePoint audited_ = TimePoint::min();
  TimePoint last_result_ = TimePoint::min();
  std::uint32_t num_requests_ = 0;
  std::uint64_t prefill_backlog_ = 0;  ///< tokens placed but not in a step yet
  std::uint64_t total_cost_ = 0;       ///< of all sequences with a request
  std::uint64_t expected_output_ = 0;
};

}  // namespace brigade::router
