// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/base/time.h"
#include "common/model/chat_template.h"
#include "common/model/spec.h"
#include "common/model/tokenizer.h"
#include "common/wire/drop_reason.h"
#include "common/wire/generation.h"
#include "common/wire/messages.h"

namespace brigade::router {

using RequestId = std::uint64_t;  ///< given by the shell, unique for the router's life
using WorkerId = std::uint64_t;   ///< one connection of one worker process; never reused
using ReplicaId = std::uint32_t;

/// A model that requests can name. Immutable, shared by all threads.
struct ServedModel {
  std::string name;
  std::string path;
  std::string digest;
  model::ModelSpec spec;
  std::shared_ptr<const model::Tokenizer> tokenizer;
  std::shared_ptr<const model::ChatTemplate> chat_template;  ///< null: the model has none
  std::int64_t max_context = 0;                              ///< tokens; the model's limit or less
};

/// One sequence to generate (n choices or a list of prompts are several requests).
struct Request {
  RequestId id = 0;
  std::string tenant;
  std::string model;
  std::vector<std::int32_t> prompt;  ///< token ids, at least one
  /// Not 0: the requests of one group are choices of one prompt and share its KV.
  std::uint64_t group = 0;
  wire::GenerationParams params;
  /// params.bad_words as the token sequences that they may come out as; a door makes them
  /// (bad_word_tokens), for it takes a tokenizer.
  std::vector<std::vector<std::int32_t>> bad_words;
};

/// Sequences of one bad word: as it is, and behind a blank.
inline constexpr std::size_t kBadWordVariants = 2;

struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t cached_tokens = 0;
};

/// One token comes at a time, nearly always: it takes no memory from the heap.
using OutputTokens = boost::container::small_vector<wire::OutputToken, 1>;

/// What a client gets, in order: scored prompt tokens first (when asked for), then pieces of text;
/// the last one, and only it, has a finish reason.
struct Output {
  RequestId request = 0;
  std::string text;     ///< whole characters; empty when held back
  OutputTokens tokens;  ///< new output tokens
  /// Beside `tokens`, when logprobs are asked for: raw bytes of each.
  std::vector<std::string> token_texts;
  /// When num_prompt_logprobs >= 0: all of them, once.
  std::vector<wire::OutputToken> prompt_tokens;
  wire::FinishReason finish = wire::FinishReason::kNone;
  std::string stop_reason;          ///< the stop string, or the id of the stop token in decimal
  Status status;                    ///< with kError (and the cause with kCancelled)
  Usage usage;                      ///< with a finish reason
  std::uint32_t retry_after_s = 0;  ///< with kResourceExhausted or kUnavailable
  /// With kError: tells whether compute was spent on a request that was given up.
  wire::DropReason drop_reason = wire::DropReason::kNone;
};

struct SendToWorker {
  WorkerId worker = 0;
  wire::ToWorker message;
};

/// What the shell must do, in order.
struct Actions {
  std::vector<SendToWorker> sends;
  std::vector<Output> outputs;
};

/// Where the time of a rank's steps went.
struct RankTimes {
  std::uint64_t compute_us = 0;  ///< sums over its stage included
  std::uint64_t wait_us = 0;     ///< for the activations of the stage before
  std::uint64_t link_us = 0;     ///< handing on

  RankTimes& operator+=(const RankTimes& other) {
    compute_us += other.compute_us;
    wait_us += other.wait_us;
    link_us += other.link_us;
    return *this;
  }
};

struct RankStatus {
  std::string worker;  ///< its name
  std::uint32_t pid = 0;
  std::string host;   ///< equal for ranks that share a machine and its memory
  std::string state;  ///< loading, ready, draining, lost
  std::uint32_t tp_rank = 0;
  std::uint32_t pp_stage = 0;
  Range layers;
  float load_fraction = 0;
  double busy_fraction = 0;    ///< of the last status window: it computed
  double bubble_fraction = 0;  ///< of the last status window: its step waited for another stage
  RankTimes times;             ///< since it joined
};

struct ReplicaStatus {
  ReplicaId id = 0;
  std::string model;
  std::string state;  ///< loading, ready, draining, drained, lost
  std::uint64_t epoch = 0;
  std::uint64_t kv_total = 0;
  std::uint64_t kv_used = 0;    ///< of live requests
  std::uint64_t kv_cached = 0;  ///< of requests that ended; taken when no block is free
  std::uint32_t running = 0;    ///< requests placed here
  std::uint64_t steps = 0;
  std::vector<RankStatus> ranks;
};

struct BucketStatus {
  std::uint32_t max_tokens = 0;  ///< upper edge
  std::uint64_t requests = 0;
};

/// What a queued request waits for.
enum class WaitReason : std::uint8_t {
  kNothing,    ///< it is next and fits: it goes with the next event
  kNoReplica,  ///< none of its model takes requests
  kReserved,   ///< a replica that has room is kept for one that has waited long
  kSlots,      ///< every replica runs as many sequences as it may
  kBudget,     ///< every replica has prompts for its next steps already
  kKv,         ///< no replica has the KV blocks to start it
  kOrder,      ///< an older one of its tenant, priority and bucket goes before it
  kPriority,   ///< a more urgent one of its tenant goes before it
  kBucket,     ///< another length bucket of its tenant goes before its own
  kFairness,   ///< a tenant that had less service goes before its own
  kPreempted,  ///< one that had been placed and lost its place goes before it
};
[[nodiscard]] std::string_view to_string(WaitReason reason);

/// Where an accepted request is.
struct RequestView {
  RequestId id = 0;
  bool placed = false;
  ReplicaId replica = 0;                        ///< when placed
  std::uint32_t slot = 0;                       ///< when placed
  WaitReason waits_for = WaitReason::kNothing;  ///< when queued
};

struct RouterStatus {
  std::vector<ReplicaStatus> replicas;
  std::uint64_t idle_workers = 0;
  std::uint64_t queued_requests = 0;
  std::uint64_t queued_tokens = 0;
  std::vector<BucketStatus> buckets;
  std::uint64_t accepted = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t refused = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t generated_tokens = 0;
  std::uint64_t preempted = 0;    ///< times that a request lost its place because KV ran out
  std::uint64_t failed_over = 0;  ///< times that a request lost its replica
};

}  // namespace brigade::router
