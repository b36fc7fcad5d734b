// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/actors/worker_actor.h"

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <utility>
#include <variant>

#include "common/actor/system.h"
#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::worker {

struct RouterLost {};
struct StopRequested {
  std::string reason;
};
/// Whatever the actor is told: one message type, by reference count.
using WorkerInput = std::variant<wire::ToWorker, EngineEvent, RouterLost, StopRequested>;
using WorkerInputPtr = std::shared_ptr<const WorkerInput>;

}  // namespace brigade::worker

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(brigade::worker::WorkerInputPtr)

namespace brigade::worker {
namespace {

using WorkerHandle = caf::typed_actor<caf::reacts_to<WorkerInputPtr>>;

void tell(Lifecycle& life, const WorkerInput& input) {
  if (const auto* message = std::get_if<wire::ToWorker>(&input)) life.on_message(*message);
  if (const auto* event = std::get_if<EngineEvent>(&input)) life.on_engine(*event);
  if (std::holds_alternative<RouterLost>(input)) life.on_router_lost();
  if (const auto* stop = std::get_if<StopRequested>(&input)) life.on_stop(stop->reason);
}

void perform(const WorkerActor::Sinks& sinks, LifecycleAction& action) {
  if (auto* send = std::get_if<SendToRouter>(&action)) sinks.to_router(std::move(send->message));
  if (auto* run = std::get_if<RunJob>(&action)) sinks.to_engine(std::move(run->job));
  if (const auto* abort = std::get_if<AbortEpoch>(&action)) sinks.abort_epoch(abort->epoch);
  if (const auto* leave = std::get_if<LeaveProcess>(&action)) sinks.on_leave(leave->reason);
}

WorkerHandle::behavior_type worker_behavior(WorkerHandle::pointer,
                                            std::shared_ptr<const WorkerActor::Sinks> sinks) {
  // The state lives as long as the behavior, and one actor handles one message at a time.
  auto life = std::make_shared<Lifecycle>();
  return {[life, sinks](const WorkerInputPtr& input) {
    const WorkerState before = life->state();
    tell(*life, *input);
    for (LifecycleAction& action : life->take_actions())
      perform(*sinks, action);
    if (life->state() != before) {
      log_info(
          str_cat(to_string(before), " -> ", to_string(life->state()), ", epoch ", life->epoch()));
    }
  }};
}

}  // namespace

struct WorkerActor::Impl {
  actor::System system;
  WorkerHandle handle;

  void tell(WorkerInput input) {
    caf::anon_send(handle, WorkerInputPtr(std::make_shared<const WorkerInput>(std::move(input))));
  }
};

WorkerActor::WorkerActor(Sinks sinks) : impl_(std::make_unique<Impl>()) {
  impl_->handle =
      impl_->system.get().spawn(worker_behavior, std::make_shared<const Sinks>(std::move(sinks)));
}

WorkerActor::~WorkerActor() {
  // The system's end waits for the actor's; a handle must not outlive it.
  actor::stop(caf::actor_cast<caf::actor>(impl_->handle));
  impl_->handle = nullptr;
}

void WorkerActor::on_message(wire::ToWorker message) {
  impl_->tell(std::move(message));
}
void WorkerActor::on_engine(EngineEvent event) {
  impl_->tell(std::move(event));
}
void WorkerActor::on_router_lost() {
  impl_->tell(RouterLost{});
}
void WorkerActor::on_stop(std::string reason) {
  impl_->tell(StopRequested{std::move(reason)});
}

}  // namespace brigade::worker
