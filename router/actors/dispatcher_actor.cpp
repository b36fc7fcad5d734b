// SPDX-License-Identifier: Apache-2.0
#include "router/actors/dispatcher_actor.h"

#include <algorithm>
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <unordered_map>

#include "common/base/log.h"
#include "common/base/overloaded.h"
#include "common/base/strings.h"

namespace brigade::router {
namespace {

using WakeAtom = caf::atom_constant<caf::atom("wake")>;
using TickAtom = caf::atom_constant<caf::atom("tick")>;
using DispatcherHandle = caf::typed_actor<caf::reacts_to<WakeAtom>, caf::reacts_to<TickAtom>>;

/// Timers further away are armed again when this one fires.
constexpr Duration kLongestTimer = std::chrono::minutes(1);

using EventInbox = Inbox<DispatcherEvent>;

/// The actor's own, used by its thread alone.
class State final {
 public:
  State(DispatcherOptions options, std::shared_ptr<EventInbox> inbox,
        std::shared_ptr<DispatcherView> view)
      : options_(std::move(options)),
        inbox_(std::move(inbox)),
        view_(std::move(view)),
        router_(options_.config, options_.models, options_.trace) {}

  /// Applies what waits, lets time pass, and does what the core asks for, once. noexcept: an
  /// exception here is a broken invariant, and CAF would end the actor and leave the process deaf.
  void run(TimePoint now) noexcept {
    inbox_->take(events_);
    for (DispatcherEvent& event : events_)
      apply(event, now);
    if (router_.next_wake() <= now) {
      router_.advance(now);
      membership_changed_ = true;
    }
    perform(router_.take_actions());
    if (std::exchange(membership_changed_, false)) publish();
#ifdef BRIGADE_CHECKS
    router_.audit();
#endif
  }

  /// When to run again without an event.
  [[nodiscard]] TimePoint next_wake() const {
    return router_.next_wake();
  }

 private:
  void apply(DispatcherEvent& event, TimePoint now) {
    std::visit(Overloaded{[&](SubmitEvent& e) {
                            sinks_[e.request.id] = std::move(e.sink);
                            router_.submit(std::move(e.request), now);
                          },
                          [&](CancelEvent& e) { router_.cancel(e.request, now); },
                          [&](WorkerMessageEvent& e) {
                            const bool is_result =
                                std::holds_alternative<wire::StepResult>(e.message);
                            membership_changed_ |= !is_result;
                            router_.on_message(e.worker, std::move(e.message), now);
                            if (is_result) deliver_result(e.received);
                          },
                          [&](WorkerLostEvent& e) {
                            membership_changed_ = true;
                            log_info(str_cat("worker ", e.worker, " is gone: ", e.reason));
                            router_.on_worker_lost(e.worker, e.reason, now);
                          },
                          [&](StatusEvent& e) { e.done(router_.status()); },
                          [&](MetricsEvent& e) { e.done(router_.metrics()); },
                          [&](DrainEvent& e) {
                            membership_changed_ = true;
                            e.done(router_.drain(e.replica, now));
                          },
                          [&](CloseEvent&) { router_.close(now); },
                          [&](CancelAllEvent&) { cancel_all(now); }},
               event);
  }

  void cancel_all(TimePoint now) {
    std::vector<RequestId> requests;
    for (const auto& [request, sink] : sinks_)
      requests.push_back(request);
    std::ranges::sort(requests);
    for (const RequestId request : requests)
      router_.cancel(request, now);
  }

  /// Without waiting for the events behind it, which may be results of as many streams again.
  void deliver_result(TimePoint received) {
    result_at_ = received;
    perform(router_.take_actions());
    result_at_ = {};
  }

  void perform(Actions actions) {
    sends_.clear();
    for (const SendToWorker& send : actions.sends) {
      sends_.push_back({.worker = send.worker, .body = encode(send.message)});
    }
    if (!options_.send(sends_)) lose(sends_);
    std::uint64_t ended = 0;
    for (Output& output : actions.outputs)
      ended += deliver(std::move(output)) ? 1 : 0;
    if (ended > 0) view_->end_requests(ended);
  }

  /// All ranks of a replica get the same command: it is encoded once, and its bytes are shared.
  net::Frame encode(const wire::ToWorker& message) {
    const auto* command = std::get_if<wire::StepCommand>(&message);
    if (command == nullptr) return net::Frame(encoder_.encode(message));
    if (command->epoch != last_epoch_ || command->step != last_step_) {
      last_command_ = net::Frame(encoder_.encode(message));
      last_epoch_ = command->epoch;
      last_step_ = command->step;
    }
    return last_command_.share();
  }

  void lose(const std::vector<WorkerSend>& sends) {
    for (const WorkerSend& send : sends) {
      inbox_->push_always(WorkerLostEvent{send.worker, "the router's outbox is full"});
    }
  }

  /// True when it was the request's last.
  bool deliver(Output output) {
    const auto sink = sinks_.find(output.request);
    if (sink == sinks_.end()) {
      log_error(str_cat("output of unknown request ", output.request));
      return false;
    }
    const bool last = output.finish != wire::FinishReason::kNone;
    if (last) log_end(output, sink->second->label());
    sink->second->on_output(std::move(output), result_at_);
    if (last) sinks_.erase(sink);
    return last;
  }

  /// Failures are news; other ends are for those who look for one request.
  static void log_end(const Output& output, std::string_view label) {
    const bool failed = output.finish == wire::FinishReason::kError;
    const std::string text =
        str_cat("request ", output.request, label.empty() ? "" : " (", label,
                label.empty() ? "" : ")", " ended: ", wire::to_string(output.finish), ", ",
                output.usage.prompt_tokens, " + ", output.usage.completion_tokens, " tokens",
                failed ? ": " : "", failed ? output.status.message() : "");
    log_line(failed ? LogLevel::kInfo : LogLevel::kDebug, text);
  }

  void publish() {
    std::uint32_t ready = 0;
    for (const ReplicaStatus& replica : router_.status().replicas) {
      if (replica.state == "ready") ++ready;
    }
    view_->set(ready, router_.ready());
    if (std::exchange(ready_replicas_, ready) != ready) options_.on_replicas();
  }

  DispatcherOptions options_;
  std::shared_ptr<EventInbox> inbox_;
  std::shared_ptr<DispatcherView> view_;
  Router router_;
  std::unordered_map<RequestId, std::shared_ptr<OutputSink>> sinks_;
  std::vector<DispatcherEvent> events_;
  std::vector<WorkerSend> sends_;
  wire::Encoder encoder_;
  net::Frame last_command_;
  std::uint64_t last_epoch_ = 0;
  std::uint64_t last_step_ = 0;
  std::uint32_t ready_replicas_ = 0;
  TimePoint result_at_{};  ///< of the result in work
  bool membership_changed_ = false;
};

/// A timer for the core's next wake, unless one comes sooner. Heartbeats push the wake back all the
/// time: a timer that fires early costs a glance, one armed for each would cost a wake each.
class Timer final {
 public:
  void arm(DispatcherHandle::pointer self, TimePoint wake, TimePoint now) {
    wake = std::min(wake, now + kLongestTimer);
    if (wake >= armed_) return;
    armed_ = wake;
    self->delayed_send(self, std::max(wake - now, Duration::zero()), TickAtom::value);
  }
  /// A timer fired.
  void fired(TimePoint now) {
    if (armed_ <= now) armed_ = kNever;
  }

 private:
  TimePoint armed_ = kNever;
};

DispatcherHandle::behavior_type dispatcher_behavior(DispatcherHandle::pointer self,
                                                    std::shared_ptr<State> state) {
  auto timer = std::make_shared<Timer>();
  return {[self, state, timer](WakeAtom) {
            const TimePoint now = Clock::now();
            state->run(now);
            timer->arm(self, state->next_wake(), now);
          },
          [self, state, timer](TickAtom) {
            const TimePoint now = Clock::now();
            timer->fired(now);
            if (state->next_wake() <= now) state->run(now);
            timer->arm(self, state->next_wake(), now);
          }};
}

}  // namespace

void DispatcherView::set(std::uint32_t ready_replicas, bool ready) {
  std::lock_guard lock(mutex_);
  ready_replicas_ = ready_replicas;
  ready_ = ready;
}

void DispatcherView::add_request() {
  std::lock_guard lock(mutex_);
  ++requests_;
}

void DispatcherView::end_requests(std::uint64_t count) {
  {
    std::lock_guard lock(mutex_);
    INVARIANT_LE(count, requests_);
    requests_ -= count;
  }
  changed_.notify_all();
}

bool DispatcherView::ready() const {
  std::lock_guard lock(mutex_);
  return ready_;
}

std::uint32_t DispatcherView::ready_replicas() const {
  std::lock_guard lock(mutex_);
  return ready_replicas_;
}

bool DispatcherView::wait_idle(TimePoint deadline) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return requests_ == 0; });
}

struct DispatcherActor::Impl {
  std::shared_ptr<DispatcherView> view = std::make_shared<DispatcherView>();
  std::shared_ptr<EventInbox> inbox;
  DispatcherHandle actor;
};

DispatcherActor::DispatcherActor(actor::System& system, DispatcherOptions options)
    : impl_(std::make_unique<Impl>()) {
  // The inbox wakes the actor, which is spawned with the inbox; nothing is pushed before both are
  // there.
  Impl* impl = impl_.get();
  impl->inbox = std::make_shared<EventInbox>(
      options.max_events, [impl] { caf::anon_send(impl->actor, WakeAtom::value); });
  auto state = std::make_shared<State>(std::move(options), impl->inbox, impl->view);
  impl->actor = system.get().spawn(dispatcher_behavior, std::move(state));
  // The core may want a timer from the start.
  caf::anon_send(impl->actor, WakeAtom::value);
}

DispatcherActor::~DispatcherActor() {
  actor::stop(caf::actor_cast<caf::actor>(impl_->actor));
  // Until the actor is down, it may call what its options refer to.
  caf::scoped_actor self(impl_->actor.home_system());
  self->wait_for(impl_->actor);
}

bool DispatcherActor::post(DispatcherEvent event) {
  return impl_->inbox->push(std::move(event));
}
void DispatcherActor::post_always(DispatcherEvent event) {
  impl_->inbox->push_always(std::move(event));
}
bool DispatcherActor::congested() const {
  return impl_->inbox->full();
}
const DispatcherView& DispatcherActor::view() const {
  return *impl_->view;
}
DispatcherView& DispatcherActor::view() {
  return *impl_->view;
}

}  // namespace brigade::router
