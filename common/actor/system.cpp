// SPDX-License-Identifier: Apache-2.0
#include "common/actor/system.h"

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/send.hpp>

#include "common/base/check.h"

namespace brigade::actor {
namespace {

struct Config : caf::actor_system_config {
  Config() {
    // The policy is an atom: given as text, CAF prints a line and runs its default.
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", 1);
  }
};

}  // namespace

struct System::Impl {
  Config config;
  caf::actor_system system{config};
};

System::System() : impl_(std::make_unique<Impl>()) {
  INVARIANT_EQ(impl_->system.scheduler().num_workers(), 1U)
      << "the scheduler's settings were not taken";
}

System::~System() = default;

caf::actor_system& System::get() {
  return impl_->system;
}

void stop(const caf::actor& actor) {
  caf::anon_send<caf::message_priority::high>(
      actor, caf::exit_msg{actor.address(), caf::exit_reason::user_shutdown});
}

}  // namespace brigade::actor
