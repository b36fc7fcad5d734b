// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "router/api/http/context.h"
#include "router/api/http/http.h"
#include "router/api/http/prepare.h"
#include "router/api/http/responder.h"

namespace brigade::router {

/// One generation from the body to the end of its answer, streamed or whole. Everything but the
/// preparation happens on the I/O thread. It ends in one of four ways: all choices finished; an
/// error (then the other choices are cancelled); the client gone (then all are); shutdown.
class GenerationCall final : public Call,
                             public OutputReceiver,
                             public std::enable_shared_from_this<GenerationCall> {
 public:
  GenerationCall(std::shared_ptr<const DoorContext> context, std::shared_ptr<Exchange> exchange)
      : context_(std::move(context)), exchange_(std::move(exchange)) {}

  /// Hands the body to the tokenizer pool; an answer follows in any case.
  void start(Api api, std::string body);
  void on_output(std::size_t index, Output&& output, TimePoint result_at) override;
  void on_gone() override;
  void on_shutdown() override;

 private:
  class Sink;

  void submit(PreparedGeneration prepared);
  void answer_echo();
  void stream_output(Choice& choice, const Output& output, TimePoint result_at);
  void collect_output(Choice& choice, Output&& output);
  void finish();
  void finish_stream();
  void finish_whole();
  void fail(const ApiError& error);
  /// Cancels what runs and lets the client go.
  void release();
  [[nodiscard]] std::string opening(bool delta) const;
  [[nodiscard]] Usage total_usage() const;

  std::shared_ptr<const DoorContext> context_;
  std::shared_ptr<Exchange> exchange_;  ///< null once the answer has ended
  PreparedGeneration prepared_;
  std::unique_ptr<Responder> responder_;
  std::vector<Choice> choices_;
  std::size_t num_finished_ = 0;
  std::size_t collected_bytes_ = 0;  ///< of an answer that is not streamed
  std::string id_;
  std::int64_t created_s_ = 0;
  std::string event_;              ///< being written; what all events begin with stays
  std::size_t opening_bytes_ = 0;  ///< of event_, that all begin with, up to the choice
  bool streaming_ = false;
};

}  // namespace brigade::router
