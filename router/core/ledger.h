// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "router/core/live_request.h"
#include "router/core/types.h"

namespace brigade::router {

/// Every accepted request and its state machine; whatever ends a request ends it here, so that
/// exactly one last Output comes for each:
///
///     accept -> queued <-> placed -> ended
///                 '--------------------^
///
/// accepted = completed + failed + cancelled + in flight, at any time.
class Ledger final {
 public:
  struct Counts {
    std::uint64_t accepted = 0;
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t refused = 0;  ///< never accepted
    std::uint64_t generated_tokens = 0;
    std::uint64_t preempted = 0;
    std::uint64_t failed_over = 0;
  };

  /// What a request that has ended had in output tokens beyond those that its tenant was charged.
  struct Settlement {
    std::size_t model_index = 0;
    std::string tenant;
    std::int64_t correction = 0;
  };

  /// `num_models`: how many a request's model_index may name.
  explicit Ledger(std::size_t num_models = 1) : stats_(num_models) {}

  /// The time of what follows.
  void set_now(TimePoint now) { now_ = now; }
  [[nodiscard]] TimePoint now() const { return now_; }

  /// `request.id` must be new. Returns it in state queued.
  LiveRequest& accept(std::unique_ptr<LiveRequest> request);
  /// The one Output of a request that is not accepted. `model_index`: none when it names no model.
  void refuse(const Request& request, std::optional<std::size_t> model_index, Status status,
              std::uint32_t retry_after_s);

  [[nodiscard]] LiveRequest* find(RequestId id);
  void place(LiveRequest& request, ReplicaId replica);
  /// Back to queued: preempted, or its replica is lost.
  void unplace_preempted(LiveRequest& request);
  void unplace_failed_over(LiveRequest& request);

  /// The prompt's log-probabilities are complete; they go out with the next Output.
  void on_prompt_scored(LiveRequest& request);
  /// A sampled token of a placed request. True when it ended the request: `request` is then gone.
  bool on_token(LiveRequest& request, wire::OutputToken token);
  /// Ends a request whose prompt was only to be scored.
  void end_scored(LiveRequest& request);
  /// Ends a request from outside (kCancelled or kError), with what text it had held back. `request`
  /// is then gone.
  void end(LiveRequest& request, wire::FinishReason finish, Status status,
           std::uint32_t retry_after_s = 0);

  /// Those whose deadline has come, earliest first.
  [[nodiscard]] std::vector<LiveRequest*> expired(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;

  [[nodiscard]] std::vector<Output> take_outputs() { return std::exchange(outputs_, {}); }
  /// One for each request that was charged and has ended since.
  [[nodiscard]] std::vector<Settlement> take_settlements() {
    return std::exchange(settlements_, {});
  }
  [[nodiscard]] std::size_t num_unsettled() const { return settlements_.size(); }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] const std::vector<ModelStats>& stats() const { return stats_; }
  [[nodiscard]] std::uint64_t num_unknown_model() const { return num_unknown_model_; }
  [[nodiscard]] std::uint64_t num_in_flight() const { return requests_.size(); }
  /// In order of ids.
  [[nodiscard]] const std::map<RequestId, std::unique_ptr<LiveRequest>>& requests() const {
    return requests_;
  }

  void audit() const;

 private:
  void unplace(LiveRequest& request);
  Output start_output(LiveRequest& request);
  void finish(LiveRequest& request, Output output);
  void count_token(LiveRequest& request);
  void count_end(const LiveRequest& request, const Output& output);

  std::map<RequestId, std::unique_ptr<LiveRequest>> requests_;
  std::set<std::pair<TimePoint, RequestId>> deadlines_;
  std::vector<Output> outputs_;
  std::vector<Settlement> settlements_;
  Counts counts_;
  std::vector<ModelStats> stats_;  ///< [models]
  std::uint64_t num_unknown_model_ = 0;
  TimePoint now_{};
  std::uint64_t next_order_ = 0;
};

}  // namespace brigade::router
