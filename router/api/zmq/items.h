// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/net/outbox.h"
#include "common/wire/client.h"
#include "router/api/service.h"

namespace brigade::router {

using ClientId = std::uint64_t;  ///< one connection of a client; never reused

/// A client's request: its own number may be used again once it has ended, the serial is not.
struct RequestKey {
  ClientId client = 0;
  std::uint64_t request = 0;
  std::uint64_t serial = 0;
};

// What other threads hand to the door's.
struct OutputItem {
  RequestKey key;
  Output output;
};
/// A prompt is ready to be submitted, or cannot be.
struct PromptItem {
  RequestKey key;
  Result<std::vector<std::int32_t>> ids;
  std::vector<std::vector<std::int32_t>> bad_words;
};
struct ReplyItem {
  ClientId client = 0;
  wire::FromRouter message;
};
using DoorItem = std::variant<OutputItem, PromptItem, ReplyItem>;
using DoorOutbox = net::Outbox<DoorItem>;

/// Hands a request's outputs to the door's thread. When the outbox is full the request is
/// cancelled: nothing of a stream is left out in silence.
class DoorSink final : public OutputSink {
 public:
  DoorSink(std::shared_ptr<DoorOutbox> outbox, Service& service, RequestKey key)
      : outbox_(std::move(outbox)), service_(service), key_(key) {}

  void on_output(Output output, TimePoint result_at) override;

 private:
  std::shared_ptr<DoorOutbox> outbox_;
  Service& service_;
  const RequestKey key_;
  bool broken_ = false;
};

/// The prompt's tokens. On the tokenizer pool. kInvalidArgument for what is not UTF-8 or no prompt
/// for the model.
[[nodiscard]] Result<std::vector<std::int32_t>> prompt_tokens(const ServedModel& model,
                                                              const wire::Prompt& prompt);

/// What a client is told of an output, in order: none, one or two messages.
[[nodiscard]] std::vector<wire::FromRouter> to_messages(std::uint64_t request, Output output);

}  // namespace brigade::router
