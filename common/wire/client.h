// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/wire/drop_reason.h"
#include "common/wire/generation.h"

/// What services and the router's socket say to each other, as plain values. `request` is the
/// client's own number, unique among its requests in flight on the connection; every answer carries
/// it.
namespace brigade::wire {

struct PromptMessage {
  std::string role;
  std::string content;
};

struct TextPrompt {
  std::string text;            ///< UTF-8
  bool parse_special = false;  ///< the texts of special tokens in it become those tokens
};
struct TokenPrompt {
  std::vector<std::int32_t> token_ids;
};
/// Rendered by the model's chat template; special tokens count only where the template wrote them.
struct ChatPrompt {
  std::vector<PromptMessage> messages;
};
using Prompt = std::variant<TextPrompt, TokenPrompt, ChatPrompt>;

// ---- client -> router ----

/// Answers: Accepted, Chunks, then exactly one of Finished and Refused (which may come alone).
struct Generate {
  std::uint64_t request = 0;
  std::string model;
  std::string tenant;
  Prompt prompt;
  GenerationParams params;
};

/// No answer of its own: the request ends with Finished (kCancelled) unless it has ended already.
struct Cancel {
  std::uint64_t request = 0;
};

/// Answer: Models.
struct ListModels {
  std::uint64_t request = 0;
};

/// Answer: StatusReply.
struct GetStatus {
  std::uint64_t request = 0;
};

/// Stops placement on a replica, lets its requests finish, releases its workers. Operators only
/// where the socket has keys. Answer: Done (the drain has begun) or Refused.
struct Drain {
  std::uint64_t request = 0;
  std::uint32_t replica = 0;
};

using ToRouter = std::variant<Generate, Cancel, ListModels, GetStatus, Drain>;

// ---- router -> client ----

struct Accepted {
  std::uint64_t request = 0;
};

struct Chunk {
  std::uint64_t request = 0;
  std::string text;                        ///< whole characters; may be empty
  std::vector<OutputToken> tokens;         ///< new output tokens
  std::vector<std::string> token_texts;    ///< empty, or the raw bytes of each token
  std::vector<OutputToken> prompt_tokens;  ///< once, when asked for
};

struct Finished {
  std::uint64_t request = 0;
  FinishReason reason = FinishReason::kStop;  ///< kStop, kLength or kCancelled
  std::string stop_reason;  ///< the stop string, or the id of the stop token in decimal
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t cached_tokens = 0;
};

/// The request cannot be served, or cannot go on. `request` is 0 when the message was not
/// understood.
struct Refused {
  std::uint64_t request = 0;
  Status status;
  std::uint32_t retry_after_s = 0;  ///< 0: trying again unchanged is of no use, or at will
  DropReason reason = DropReason::kNone;
};

struct ModelInfo {
  std::string name;
  std::uint64_t max_context = 0;  ///< tokens
  std::uint32_t vocab_size = 0;
};

struct Models {
  std::uint64_t request = 0;
  std::vector<ModelInfo> models;
};

struct StatusReply {
  std::uint64_t request = 0;
  std::string json;
};

struct Done {
  std::uint64_t request = 0;
};

/// Sent to clients with requests in flight, so that either side notices that the other is gone.
struct KeepAlive {};

using FromRouter =
    std::variant<Accepted, Chunk, Finished, Refused, Models, StatusReply, Done, KeepAlive>;

}  // namespace brigade::wire
