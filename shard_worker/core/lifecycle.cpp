// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/core/lifecycle.h"

#include <utility>

#include "common/base/overloaded.h"
#include "common/base/strings.h"

namespace brigade::worker {
std::string_view to_string(WorkerState state) {
  switch (state) {
    case WorkerState::kIdle:
      return "idle";
    case WorkerState::kLoading:
      return "loading";
    case WorkerState::kLoaded:
      return "loaded";
    case WorkerState::kStarting:
      return "starting";
    case WorkerState::kReady:
      return "ready";
    case WorkerState::kLeaving:
      return "leaving";
  }
  return "unknown";
}

void Lifecycle::on_router_lost() {
  end_epoch();
}

void Lifecycle::on_message(const wire::ToWorker& message) {
  if (state_ == WorkerState::kLeaving) return;
  std::visit(Overloaded{[this](const wire::Assign& assign) { on_assign(assign); },
                        [this](const wire::Start& start) { on_start(start); },
                        [this](const wire::Abort& abort) {
                          if (abort.epoch == epoch_) end_epoch();
                        },
                        [this](const wire::Release& release) {
                          leave(release.reason.empty() ? "released" : release.reason);
                        },
                        [](const wire::HeartbeatAck&) {}, [](const wire::StepCommand&) {}},
             message);
}

void Lifecycle::on_assign(const wire::Assign& assign) {
  if (assign.epoch == 0 || assign.epoch == epoch_) {
    send(wire::Failed{.epoch = assign.epoch,
                      .status = failed_precondition(
                          str_cat("assigned to epoch ", assign.epoch, " in epoch ", epoch_))});
    return;
  }
  end_epoch();  // a new place replaces the old one
  epoch_ = assign.epoch;
  state_ = WorkerState::kLoading;
  actions_.push_back(RunJob{LoadJob{assign}});
}

void Lifecycle::on_start(const wire::Start& start) {
  Status refusal;
  if (state_ != WorkerState::kLoaded || start.epoch != epoch_) {
    refusal = failed_precondition(str_cat("start of epoch ", start.epoch, " while ",
                                          to_string(state_), " in epoch ", epoch_));
  } else if (start.num_kv_blocks > max_kv_blocks_) {
    refusal = resource_exhausted(
        str_cat(start.num_kv_blocks, " KV blocks, at most ", max_kv_blocks_, " fit"));
  }
  if (!refusal.ok()) {
    if (start.epoch == epoch_) end_epoch();
    send(wire::Failed{.epoch = start.epoch, .status = std::move(refusal)});
    return;
  }
  state_ = WorkerState::kStarting;
  actions_.push_back(RunJob{StartJob{.epoch = epoch_, .num_kv_blocks = start.num_kv_blocks}});
}

void Lifecycle::on_engine(const EngineEvent& event) {
  const std::uint64_t event_epoch = std::visit([](const auto& e) { return e.epoch; }, event);
  if (event_epoch != epoch_ || epoch_ == 0) return;
  std::visit(Overloaded{[this](const LoadProgressed& e) {
                          send(wire::LoadProgress{.epoch = e.epoch, .fraction = e.fraction});
                        },
                        [this](const LoadDone& e) {
                          state_ = WorkerState::kLoaded;
                          max_kv_blocks_ = e.max_kv_blocks;
                          send(wire::Loaded{.epoch = e.epoch,
                                            .max_kv_blocks = e.max_kv_blocks,
                                            .weight_bytes = e.weight_bytes});
                        },
                        [this](const StartDone& e) {
                          state_ = WorkerState::kReady;
                          send(wire::Ready{.epoch = e.epoch});
                        },
                        [this](const EpochFailed& e) {
                          send(wire::Failed{.epoch = e.epoch, .status = e.status});
                          end_epoch();
                        }},
             event);
}

void Lifecycle::on_stop(const std::string& reason) {
  leave(reason);
}

void Lifecycle::leave(const std::string& reason) {
  if (state_ == WorkerState::kLeaving) return;
  end_epoch();
  state_ = WorkerState::kLeaving;
  send(wire::Goodbye{.reason = reason});
  actions_.push_back(LeaveProcess{reason});
}

void Lifecycle::end_epoch() {
  if (epoch_ != 0) {
    actions_.push_back(AbortEpoch{epoch_});
    actions_.push_back(RunJob{StopJob{epoch_}});
  }
  epoch_ = 0;
  if (state_ != WorkerState::kLeaving) state_ = WorkerState::kIdle;
}

std::vector<LifecycleAction> Lifecycle::take_actions() {
  return std::exchange(actions_, {});
}

}  // namespace brigade::worker
