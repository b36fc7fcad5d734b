// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/base/time.h"
#include "common/wire/messages.h"
#include "shard_worker/collectives/collective.h"
#include "shard_worker/core/step_inputs.h"

namespace brigade::worker {

/// What the last stage found: one entry for each of StepInputs::score_rows, in order.
struct ScoredToken {
  std::uint32_t seq = 0;
  std::uint32_t position = 0;
  std::int32_t token = 0;
  bool sampled = false;
  std::uint8_t fault = 0;  ///< of wire::EntryKind: the token is then any
  float logprob = 0;       ///< NaN when not asked for
  std::vector<std::int32_t> top_tokens;
  std::vector<float> top_logprobs;
};

/// One rank's compute: weights, KV, and the layers of its stage. Two kinds: a decoder over an op
/// set (CPU), and a simulated device. One thread calls it; abort of a running step comes through
/// the Collective.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Loads (or keeps, when the shard is the same as before) the weights that `assign` gives this
  /// rank. `progress` is called with 0..1 now and then.
  virtual Status load(const wire::Assign& assign, const std::function<void(float)>& progress) = 0;
  [[nodiscard]] virtual std::uint64_t weight_bytes() const = 0;
  /// Blocks that fit in `memory_bytes` beside the weights.
  [[nodiscard]] virtual std::uint64_t max_kv_blocks(std::uint64_t memory_bytes) const = 0;
  /// Bytes of one block on this rank, above 0 after load.
  [[nodiscard]] virtual std::uint64_t kv_block_bytes() const = 0;
  /// kResourceExhausted when the machine has no memory for them.
  virtual Status allocate_kv(std::uint64_t num_kv_blocks) = 0;

  /// Floats a token in what travels between stages.
  [[nodiscard]] virtual std::int64_t hidden_size() const = 0;
  /// Tokens are in [0, vocab_size): commands and samples are checked against it.
  [[nodiscard]] virtual std::int64_t vocab_size() const = 0;

  /// Runs the stage's layers for one step. `hidden` is [num_tokens, hidden_size]: what the previous
  /// stage sent (the first stage: ignored on entry, and written by the embedding); on return what
  /// the next stage gets. On the last stage `scored` is filled, on tp_rank 0 only. Waits of the
  /// collective end at `deadline`.
  virtual Status run(const StepInputs& inputs, Collective& group, TimePoint deadline,
                     std::span<float> hidden, std::vector<ScoredToken>& scored) = 0;
};

struct EngineOptions {
  int num_threads = 1;
  bool pin = false;
  int first_cpu = 0;
  bool spin = false;
};

[[nodiscard]] std::unique_ptr<Engine> make_cpu_engine(const EngineOptions& options);
[[nodiscard]] std::unique_ptr<Engine> make_sim_engine();

}  // namespace brigade::worker
