// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "router/core/ledger.h"
#include "router/core/replica.h"
#include "tests/router/core/support/fake_model.h"

namespace brigade::router::testing {

/// A replica and a ledger, and results made by hand: what the router does between them, without a
/// cluster.
class ReplicaDriver final : public ResultSink {
 public:
  explicit ReplicaDriver(Replica::Options options) : replica(with_defaults(options)) {}

  LiveRequest& add(RequestId id, std::size_t num_prompt, std::uint32_t max_tokens,
                   wire::GenerationParams params = {}) {
    auto request = std::make_unique<LiveRequest>();
    request->id = id;
    request->model = model;
    params.max_tokens = max_tokens;
    request->tokens.assign(num_prompt, FakeTokenizer::kA);
    request->num_prompt = static_cast<std::uint32_t>(num_prompt);
    request->prompt_scored = params.num_prompt_logprobs < 0;
    request->group = group;
    if (group != 0) request->chain = PrefixChain(group);
    if (shares) request->chain = PrefixChain({.model_digest = model->digest, .salt = "t"});
    request->stream = std::make_unique<OutputStream>(model->tokenizer, params);
    request->params = std::move(params);
    return ledger.accept(std::move(request));
  }
  LiveRequest& start(RequestId id, std::size_t num_prompt, std::uint32_t max_tokens,
                     wire::GenerationParams params = {}) {
    LiveRequest& request = add(id, num_prompt, max_tokens, std::move(params));
    place(request);
    return request;
  }
  void place(LiveRequest& request) {
    ledger.place(request, 0);
    replica.admit(request);
  }
  void cancel(LiveRequest& request) {
    replica.remove(request.slot, request.id);
    ledger.end(request, wire::FinishReason::kCancelled, cancelled("x"));
  }

  /// All steps that can be issued now.
  std::vector<wire::StepCommand> plan() {
    std::vector<wire::StepCommand> commands;
    wire::StepCommand command;
    while (replica.plan(now, command))
      commands.push_back(std::move(command));
    replica.audit();
    return commands;
  }
  /// What the last stage would answer when it samples `token` everywhere.
  static wire::StepResult result_of(const wire::StepCommand& command,
                                    std::int32_t token = FakeTokenizer::kA) {
    wire::StepResult result{.epoch = command.epoch,
                            .step = command.step,
                            .lane = command.lane,
                            .plan_hash = wire::plan_hash(command),
                            .cu_top = {0}};
    const auto add_entry = [&result](std::uint32_t seq, std::uint32_t position, std::int32_t id,
                                     bool sampled) {
      result.seq.push_back(seq);
      result.position.push_back(position);
      result.token.push_back(id);
      result.sampled.push_back(sampled ? 1 : 0);
      result.logprob.push_back(sampled ? std::numeric_limits<float>::quiet_NaN() : -1.0F);
      result.cu_top.push_back(0);
    };
    for (std::size_t i = 0; i < command.num_seqs(); ++i) {
      const std::uint32_t begin = command.cu_tokens[i];
      const std::uint32_t end = command.cu_tokens[i + 1];
      if ((command.flags[i] & wire::kScorePrompt) != 0) {
        for (std::uint32_t row = begin; row < end; ++row) {
          const std::int32_t target =
              row + 1 < end ? command.tokens[row + 1] : command.next_token[i];
          if (target != -1) {
            add_entry(command.seq[i], command.position[i] + row - begin + 1, target, false);
          }
        }
      }
      if ((command.flags[i] & wire::kSampleToken) != 0) {
        add_entry(command.seq[i], command.position[i] + end - begin, token, true);
      }
    }
    return result;
  }
  Status finish(const wire::StepCommand& command, std::int32_t token = FakeTokenizer::kA) {
    Status status = replica.on_result(result_of(command, token), now, *this);
    replica.audit();
    ledger.audit();
    return status;
  }

  void on_prompt_scored(LiveRequest& request) override {
    ledger.on_prompt_scored(request);
    if (!request.only_scores()) return;
    replica.remove(request.slot, request.id);
    ledger.end_scored(request);
  }
  void on_sampled(LiveRequest& request, wire::OutputToken token) override {
    const std::uint32_t slot = request.slot;
    const RequestId id = request.id;
    if (ledger.on_token(request, std::move(token))) replica.remove(slot, id);
  }
  void on_fault(LiveRequest& request, Status status) override {
    replica.remove(request.slot, request.id);
    ledger.end(request, wire::FinishReason::kError, std::move(status));
  }

  std::shared_ptr<const ServedModel> model = make_fake_model("fake", 4096);
  Ledger ledger;
  Replica replica;
  TimePoint now{std::chrono::seconds(1)};
  std::uint64_t group = 0;  ///< of the requests added from now on
  bool shares = false;      ///< requests added from now on share KV by their tokens

 private:
  static Replica::Options with_defaults(Replica::Options options) {
    options.epoch = 7;
    options.vocab_size = FakeTokenizer::kVocabSize;
    if (options.num_blocks == 0) options.num_blocks = 64;
    return options;
  }
};

}  // namespace brigade::router::testing
