// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <caf/fwd.hpp>
#include <memory>

/// The one place where CAF is set up.
namespace brigade::actor {

/// An actor system with one scheduler thread that shares work and sleeps when there is none (CAF's
/// default burns a third of a core at a message every 2 ms, and half a percent when idle). Reads no
/// file, environment or command line.
///
/// Order of an end: stop() each actor, join the threads that hold handles, let all handles go, then
/// the system. A handle that outlives its system hangs the destructor or crashes later.
class System final {
 public:
  System();
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  [[nodiscard]] caf::actor_system& get();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Ends the actor after the message it handles now, before what waits in its mailbox and without
/// waiting for its timers. Typed handles: `stop(caf::actor_cast<caf::actor>(handle))`.
void stop(const caf::actor& actor);

}  // namespace brigade::actor
