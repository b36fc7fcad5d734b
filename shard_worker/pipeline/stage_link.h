// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/net/context.h"
#include "common/net/event_fd.h"
#include "common/net/keys.h"
#include "common/net/poller.h"
#include "common/net/socket.h"
#include "common/wire/codec.h"
#include "common/wire/messages.h"
#include "common/wire/stage_link.h"
#include "shard_worker/core/last_samples.h"
#include "shard_worker/core/link_plan.h"
#include "shard_worker/core/step_inputs.h"

namespace brigade::worker {

/// How activations go from stage to stage, and samples from the last stage to the first, straight
/// between workers. Each worker binds one socket, for its life, that all its peers send to; for
/// each epoch it connects to the peers it sends to. A message is a small verified header and, for
/// activations, one raw frame of f32 [num_tokens, hidden_size].
///
/// With a key pair the link is CURVE both ways: it lets in the ranks that admit() names and no
/// other key, and what it sends is for the peer's key alone. Without one it is for this host.
///
/// Bounded: queues of kMaxQueued messages a peer, messages of at most max_message_bytes, a deadline
/// on every call. What is malformed, of another epoch, or from a rank that has no business here is
/// dropped and counted: anybody who reaches the port can send it. What comes from the right peer
/// and does not fit the step is a Status: the ranks disagree.
///
/// All but wake() belongs to one thread.
class StageLink final {
 public:
  struct Options {
    std::string ipc_path;   ///< of this link alone: made by bind(), removed with the link
    std::string bind_host;  ///< tcp, port chosen freely
    std::optional<net::KeyPair> keys;
    std::size_t max_message_bytes = std::size_t{64} << 20;
  };
  /// Messages that a peer may have sent and we have not read.
  static constexpr int kMaxQueued = 64;

  /// `context` outlives the link.
  static Result<std::unique_ptr<StageLink>> bind(net::Context& context, Options options);
  ~StageLink();
  StageLink(const StageLink&) = delete;
  StageLink& operator=(const StageLink&) = delete;

  /// Where peers connect to: ipc first.
  [[nodiscard]] const std::vector<std::string>& endpoints() const { return endpoints_; }

  /// The key that peers must expect here; empty without one.
  [[nodiscard]] std::string public_key() const;

  /// Lets in the ranks of `assign`'s replica, in place of those before. Must be done on every rank
  /// before any opens: a key refused once does not knock again.
  Status admit(const wire::Assign& assign);

  /// From any thread: the waits below look at their stop token again.
  void wake() { wake_.signal(); }

  /// Connects to the peers of `plan` and waits until each rank that sends to this one has shown
  /// that its connection stands. Every wait until close() ends with kCancelled when `stop` is
  /// requested (and wake() called).
  Status open(const LinkPlan& plan, std::stop_token stop, TimePoint deadline);
  void close();

  /// `hidden` is [num_tokens, hidden_size]; a copy goes to each rank of the next stage that this
  /// one serves.
  Status send_hidden(const StepInputs& inputs, std::span<const float> hidden, TimePoint deadline);
  /// What the stage before computed for exactly this step.
  Status receive_hidden(const StepInputs& inputs, std::span<float> hidden, TimePoint deadline);

  Status send_samples(const wire::SampledTokens& samples, TimePoint deadline);
  /// Takes what has come into `samples`, and waits until the samples of `needed_step`, if any,
  /// have.
  Status receive_samples(std::optional<std::uint64_t> needed_step, LastSamples& samples,
                         TimePoint deadline);

  struct Dropped {
    std::uint64_t malformed = 0;  ///< no valid message
    std::uint64_t other_epoch = 0;
    std::uint64_t unexpected = 0;  ///< valid, but not from a rank that sends to this one
  };
  [[nodiscard]] const Dropped& dropped() const { return dropped_; }

 private:
  /// Something valid, of this epoch, from a rank that sends here.
  struct Incoming {
    wire::StageLinkMessage message;
    net::Frame payload;  ///< of activations
  };
  /// A peer's sign that its connection stands, kept when it comes before our own open().
  struct Probe {
    std::uint64_t epoch = 0;
    std::uint32_t stage = 0;
    std::uint32_t tp_rank = 0;
  };

  StageLink(net::Context& context, Options options, net::Socket socket);
  Status connect_peer(const LinkPeer& peer);
  Status send_probes(TimePoint deadline);
  Status await_probe(TimePoint deadline);
  [[nodiscard]] bool has_probe() const;
  void keep_probe(const wire::ActivationHeader& header);
  [[nodiscard]] Probe expected_probe() const;
  wire::ActivationHeader make_header(std::uint64_t step) const;
  Status send(std::size_t peer, net::Frame& header, net::Frame* payload, TimePoint deadline);
  std::optional<Incoming> take(net::Received received);
  std::optional<Incoming> take_activations(net::Received& received,
                                           const wire::ActivationHeader& header);
  Result<std::optional<Incoming>> poll_message();
  Result<Incoming> next_message(TimePoint deadline, std::string_view awaited);
  Status check_hidden(const StepInputs& inputs, const Incoming& incoming) const;
  Status record_samples(const Incoming& incoming, LastSamples& samples);

  net::Context& context_;
  Options options_;
  net::Socket socket_;
  net::EventFd wake_;
  net::Poller poller_;
  wire::Encoder encoder_;
  std::vector<std::string> endpoints_;
  std::uint64_t next_connection_ = 0;

  // Of the open epoch.
  LinkPlan plan_;
  bool open_ = false;
  std::stop_token stop_;
  std::vector<net::Socket> peers_;  ///< hidden_to, or samples_to: no rank has both
  std::optional<std::uint64_t> last_sampled_step_;

  std::deque<Probe> probes_;
  Dropped dropped_;
};

}  // namespace brigade::worker
