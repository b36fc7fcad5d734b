// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "common/net/socket.h"
#include "common/wire/codec.h"
#include "common/wire/sequence.h"

namespace brigade::router::testing {

/// The letter that the scripted worker samples at a position: a, b, ..., z, a, ...
[[nodiscard]] char letter_at(std::uint32_t position);

/// A worker process as a thread: it says Hello, loads, and answers each step with the letters of
/// the positions. It can misbehave on request.
class ScriptedWorker final {
 public:
  struct Options {
    std::string endpoint;
    std::string routing_id = "scripted";
    std::uint64_t incarnation = 1;
    Duration step_time{};
    std::optional<net::Keys> keys;
  };

  ScriptedWorker(net::Context& context, Options options);
  /// Vanishes without a goodbye.
  ~ScriptedWorker();

  /// The next message is no FlatBuffer.
  void send_garbage() { garbage_ = true; }
  [[nodiscard]] bool released() const { return released_; }
  /// A message came that told it to say Hello anew.
  [[nodiscard]] bool sequence_broken() const { return sequence_broken_; }

 private:
  void loop();
  void send(const wire::FromWorker& message);
  void receive(const net::Received& received);
  void answer(const wire::ToWorker& message);
  [[nodiscard]] static wire::StepResult run(const wire::StepCommand& command);

  Options options_;
  net::Socket socket_;
  wire::Encoder encoder_;
  wire::SequenceOut out_;
  wire::SequenceIn in_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> garbage_ = false;
  std::atomic<bool> released_ = false;
  std::atomic<bool> sequence_broken_ = false;
  std::thread thread_;
};

}  // namespace brigade::router::testing
