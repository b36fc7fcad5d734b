// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/base/partition.h"
#include "common/base/status.h"
#include "common/wire/generation.h"

/// What router and workers say to each other, as plain values. Pure code (router/core,
/// shard_worker/core) knows only these; common/wire/codec.h turns them into verified FlatBuffers
/// and back. Conventions: `cu_x` has one entry more than there are owners and gives the half-open
/// interval of each in `x`.
namespace brigade::wire {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::uint32_t kBlockSize = 16;  ///< tokens a KV block

enum class ActivationMode : std::uint8_t { kInt8 = 0, kFloat = 1 };
enum class KvType : std::uint8_t { kF16 = 0, kF32 = 1 };

/// Cost model of a simulated device: a step takes base_us + us_per_token * tokens +
/// us_per_context_token * the sum of the context lengths, and up to the given fraction more, drawn
/// from replica, stage and step.
struct SimCost {
  double base_us = 1000;
  double us_per_token = 20;
  double us_per_context_token = 0.01;
  double jitter = 0;
  double load_ms = 50;  ///< pretended time to load weights
};

// ---- membership: worker -> router ----

struct Hello {
  std::uint32_t protocol_version = kProtocolVersion;
  std::string build_id;
  std::string schema_hash;        ///< of schemas/, hex; must equal the router's
  std::string name;               ///< for people: unique if the operator made it so
  std::uint64_t incarnation = 0;  ///< random, new at every start of the process
  std::string host_id;            ///< equal for processes that share memory
  std::uint32_t pid = 0;
  std::string device;  ///< "cpu" or "sim"
  std::uint32_t num_threads = 1;
  std::uint64_t memory_bytes = 0;      ///< what weights and KV together may take
  std::vector<std::string> endpoints;  ///< where peers reach its stage link, ipc first
  /// Public CURVE key of its stage link, new at every start of the process; empty: the link asks
  /// for none and is for this host alone.
  std::string link_key;
};

struct LoadProgress {
  std::uint64_t epoch = 0;
  float fraction = 0;  ///< 0..1
};

/// Weights are in place; this many KV blocks would fit beside them.
struct Loaded {
  std::uint64_t epoch = 0;
  std::uint64_t max_kv_blocks = 0;
  std::uint64_t weight_bytes = 0;
};

/// KV is allocated, links and group are up: steps may come.
struct Ready {
  std::uint64_t epoch = 0;
};

/// This rank cannot go on in this epoch (load failed, collective expired, peer disagreed). It stays
/// connected, idle.
struct Failed {
  std::uint64_t epoch = 0;
  Status status;
};

/// Sent by the step loop, so that a hung loop is seen though its socket still answers.
struct Heartbeat {
  std::uint64_t epoch = 0;
  std::uint64_t last_step = 0;  ///< last step finished
  std::uint32_t queued_steps = 0;
  bool running = false;  ///< inside a step now
};

/// The worker leaves in good order (its process ends next).
struct Goodbye {
  std::string reason;
};

// ---- membership: router -> worker ----

struct StageInfo {
  Range layers;
  std::uint32_t tp_size = 1;
  /// endpoints[tp_rank]: where that rank's stage link is bound (ipc first).
  std::vector<std::vector<std::string>> endpoints;
  std::vector<std::string> host_ids;   ///< [tp_rank]
  std::vector<std::string> link_keys;  ///< [tp_rank], as in Hello
};

/// A worker's place in a replica. Sent once all its ranks are chosen; starts loading.
struct Assign {
  std::uint64_t epoch = 0;
  std::uint32_t replica = 0;
  std::string model_name;
  std::string model_path;
  std::string model_digest;  ///< of the file's header and size; a rank with another file refuses
  std::uint32_t tp_rank = 0;
  std::uint32_t pp_stage = 0;
  std::vector<StageInfo> stages;  ///< [pp_stage]
  std::string group_name;  ///< shared-memory name of this stage's TP group, unique for the epoch
  ActivationMode activations = ActivationMode::kInt8;
  KvType kv_type = KvType::kF16;
  std::uint32_t max_step_tokens = 512;
  std::uint32_t max_seqs = 256;
  std::uint32_t collective_timeout_ms = 30000;
  SimCost sim;
};

struct Start {
  std::uint64_t epoch = 0;
  std::uint64_t num_kv_blocks = 0;
};

/// Stop work of this epoch at once (collectives included) and become idle; weights may be kept for
/// the next Assign.
struct Abort {
  std::uint64_t epoch = 0;
  std::string reason;
};

/// Drained: leave. The worker answers Goodbye and its process ends.
struct Release {
  std::string reason;
};

/// The router is alive; answers a Heartbeat.
struct HeartbeatAck {
  std::uint64_t epoch = 0;
  std::uint32_t interval_ms = 0;  ///< between heartbeats from now on; 0: as before
};

// ---- steps ----

/// Sampling that changes or forbids logits. The tokens it depends on come along, so that a rank
/// needs nothing of the sequence's past, whatever a prefix cache or a replay leaves out: from here
/// on the rank adds what it draws.
struct SamplingControls {
  float min_p = 0;
  float typical_p = 1;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  std::vector<TokenBias> bias;
  std::vector<std::int32_t> allowed_tokens;          ///< ascending; empty = all
  std::vector<std::vector<std::int32_t>> bad_words;  ///< none empty
  std::vector<std::int32_t> prompt_tokens;  ///< distinct, ascending; with a repetition penalty
  std::vector<std::int32_t> output_tokens;  ///< so far, in order; with penalties or bad words

  [[nodiscard]] bool has_penalties() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
  /// What is drawn depends on the output so far.
  [[nodiscard]] bool needs_output() const { return has_penalties() || !bad_words.empty(); }
};

/// What a rank must know about a sequence to sample for it; sent once, with the sequence's first
/// step in an epoch.
struct SequenceAdmit {
  std::uint32_t seq = 0;  ///< slot in [0, max_seqs), reused after release
  std::uint64_t seed = 0;
  float temperature = 0;  ///< 0 = greedy
  float top_p = 1;
  std::int32_t top_k = 0;                 ///< 0 = all
  std::int32_t num_logprobs = -1;         ///< -1 none; 0 the token's own; up to 20 best beside it
  std::int32_t num_prompt_logprobs = -1;  ///< as above, for prompt tokens
  /// No banned token is sampled for a position below this one (min_tokens, as an absolute
  /// position).
  std::uint32_t banned_until_position = 0;
  std::vector<std::int32_t> banned_tokens;           ///< end and stop tokens
  std::shared_ptr<const SamplingControls> controls;  ///< null: none of them is asked for
};

/// What StepResult::sampled says of an entry. A fault ends the entry's request alone: its token is
/// then any of the vocabulary, so that steps in flight can go on.
enum EntryKind : std::uint8_t {
  kPromptEntry = 0,
  kSampledEntry = 1,     ///< a bit
  kNothingAllowed = 2,   ///< fault: every token is masked
  kLogitsNotFinite = 4,  ///< fault
};

/// Flags of one sequence in one step.
enum StepFlags : std::uint8_t {
  kTokenFromSample = 1,  ///< TokenSource: its single token here is its last sample, not in `tokens`
                         ///< (which holds -1)
  kSampleToken = 2,      ///< sample after its last row
  kScorePrompt = 4,  ///< log-probabilities of its prompt tokens: row i scores the token after it
};

/// One step of one lane, the same message to every rank of the replica. All vectors but the cu_
/// ones and their targets have one entry a sequence. A sequence's blocks are appended to its block
/// table before the step.
struct StepCommand {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  ///< counts up by one in an epoch, across lanes
  std::uint32_t lane = 0;
  std::vector<std::uint32_t> release;   ///< slots to forget first
  std::vector<SequenceAdmit> admit;     ///< then slots to open
  std::vector<std::uint32_t> seq;       ///< slot
  std::vector<std::uint32_t> position;  ///< of its first token in this step
  std::vector<std::uint8_t> flags;      ///< StepFlags
  /// KScorePrompt: the prompt token after this chunk, else -1.
  std::vector<std::int32_t> next_token;
  std::vector<std::uint32_t> cu_tokens;  ///< [num_seqs + 1]
  std::vector<std::int32_t> tokens;
  std::vector<std::uint32_t> cu_blocks;  ///< [num_seqs + 1]
  std::vector<std::uint32_t> blocks;
  /// Blocks whose KV is copied before the step writes anything: [i] of one to [i] of the other.
  std::vector<std::uint32_t> copy_from;
  std::vector<std::uint32_t> copy_to;

  [[nodiscard]] std::size_t num_seqs() const { return seq.size(); }
};

/// Over everything in the command, so that ranks can compare what they were told with one number.
[[nodiscard]] std::uint64_t plan_hash(const StepCommand& command);

/// From tp_rank 0 of the last stage: the step has ended on every stage. One entry a scored token: a
/// sampled one, or a prompt token under kScorePrompt.
struct StepResult {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint32_t lane = 0;
  std::uint64_t plan_hash = 0;
  std::vector<std::uint32_t> seq;
  std::vector<std::uint32_t> position;  ///< of the scored token in its sequence
  std::vector<std::int32_t> token;
  std::vector<std::uint8_t> sampled;  ///< EntryKind: sampled or not, and at most one fault
  std::vector<float> logprob;  ///< natural log, of the raw distribution; NaN when not asked for
  std::vector<std::uint32_t> cu_top;     ///< [num_entries + 1]
  std::vector<std::int32_t> top_tokens;  ///< best first
  std::vector<float> top_logprobs;
  std::uint32_t compute_us = 0;  ///< of the last stage
  std::uint32_t wait_us = 0;     ///< of the last stage: idle before this step's activations came
};

/// A rank other than the one that sends StepResult reports its stage's times (for `brigade
/// status`), at most once a heartbeat.
struct StageTimes {
  std::uint64_t epoch = 0;
  std::uint64_t num_steps = 0;
  std::uint64_t compute_us = 0;
  std::uint64_t wait_us = 0;
  std::uint64_t link_us = 0;
};

using FromWorker = std::variant<Hello, LoadProgress, Loaded, Ready, Failed, Heartbeat, Goodbye,
                                StepResult, StageTimes>;
using ToWorker = std::variant<Assign, Start, Abort, Release, HeartbeatAck, StepCommand>;

}  // namespace brigade::wire
