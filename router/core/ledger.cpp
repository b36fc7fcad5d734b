// SPDX-License-Identifier: Apache-2.0
#include "router/core/ledger.h"

#include <utility>

#include "common/base/check.h"
#include "router/core/planted_bug.h"

namespace brigade::router {
namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

LiveRequest& Ledger::accept(std::unique_ptr<LiveRequest> request) {
  request->order = next_order_++;
  request->phase = RequestPhase::kQueued;
  if (planted(PlantedBug::kLateDeadline)) request->deadline += std::chrono::seconds(10);
  LiveRequest& accepted = *request;
  const bool is_new = requests_.emplace(accepted.id, std::move(request)).second;
  INVARIANT(is_new) << "request id " << accepted.id << " is in use";
  deadlines_.emplace(accepted.deadline, accepted.id);
  accepted.times.accepted = now_;
  ++counts_.accepted;
  return accepted;
}

void Ledger::refuse(const Request& request, std::optional<std::size_t> model_index, Status status,
                    std::uint32_t retry_after_s) {
  ++counts_.refused;
  if (model_index) {
    ++stats_[*model_index].refused[static_cast<std::size_t>(status.code())];
  } else {
    ++num_unknown_model_;
  }
  Output output{.request = request.id,
                .finish = wire::FinishReason::kError,
                .status = std::move(status),
                .retry_after_s = retry_after_s};
  output.drop_reason = wire::drop_reason_of(output.status.code(), /*computed=*/false);
  output.usage.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
  outputs_.push_back(std::move(output));
}

LiveRequest* Ledger::find(RequestId id) {
  const auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : it->second.get();
}

void Ledger::place(LiveRequest& request, ReplicaId replica) {
  INVARIANT(request.phase == RequestPhase::kQueued) << "request " << request.id << " is not queued";
  request.phase = RequestPhase::kPlaced;
  request.replica = replica;
  if (request.times.placed == TimePoint{}) {
    request.times.placed = now_;
    stats_[request.model_index].queue_s.observe(seconds(now_ - request.times.accepted));
  }
}

void Ledger::unplace_preempted(LiveRequest& request) {
  unplace(request);
  ++request.num_preemptions;
  ++counts_.preempted;
  ++stats_[request.model_index].preempted;
}

void Ledger::unplace_failed_over(LiveRequest& request) {
  unplace(request);
  ++request.num_fail_overs;
  ++counts_.failed_over;
  ++stats_[request.model_index].failed_over;
}

void Ledger::unplace(LiveRequest& request) {
  INVARIANT(request.phase == RequestPhase::kPlaced) << "request " << request.id << " is not placed";
  request.phase = RequestPhase::kQueued;
  // Positions come again from the first one: a prompt that was scored in part is scored anew.
  if (!request.prompt_scored) request.prompt_scores.clear();
}

void Ledger::on_prompt_scored(LiveRequest& request) {
  INVARIANT(!request.prompt_scored) << "prompt of request " << request.id << " scored twice";
  INVARIANT_EQ(request.prompt_scores.size(), request.num_prompt);
  request.prompt_scored = true;
}

/// An Output with the scored prompt in it, if that has not gone out yet.
Output Ledger::start_output(LiveRequest& request) {
  Output output{.request = request.id};
  if (request.prompt_scored) output.prompt_tokens = std::exchange(request.prompt_scores, {});
  return output;
}

bool Ledger::on_token(LiveRequest& request, wire::OutputToken token) {
  INVARIANT(request.phase == RequestPhase::kPlaced) << "token for request " << request.id;
  INVARIANT_LT(request.num_output(), request.max_tokens());
  ++counts_.generated_tokens;
  request.tokens.push_back(token.token);
  count_token(request);
  OutputStream::Piece piece = request.stream->push(token.token);
  Output output = start_output(request);
  output.text = std::move(piece.text);
  if (request.params.num_logprobs >= 0) {
    output.token_texts.emplace_back(request.model->tokenizer->token_bytes(token.token, true));
  }
  output.tokens.push_back(std::move(token));
  if (piece.finish == wire::FinishReason::kNone) {
    outputs_.push_back(std::move(output));
    return false;
  }
  output.finish = piece.finish;
  output.stop_reason = std::move(piece.stop_reason);
  finish(request, std::move(output));
  return true;
}

void Ledger::end_scored(LiveRequest& request) {
  INVARIANT(request.only_scores() && request.prompt_scored) << "request " << request.id;
  Output output = start_output(request);
  output.finish = wire::FinishReason::kLength;
  finish(request, std::move(output));
}

void Ledger::end(LiveRequest& request, wire::FinishReason reason, Status status,
                 std::uint32_t retry_after_s) {
  Output output = start_output(request);
  output.text = request.stream->flush();
  output.finish = reason;
  output.status = std::move(status);
  output.retry_after_s = retry_after_s;
  if (reason == wire::FinishReason::kError) {
    output.drop_reason = wire::drop_reason_of(output.status.code(), request.was_started);
  }
  finish(request, std::move(output));
}

void Ledger::finish(LiveRequest& request, Output output) {
  INVARIANT(request.phase != RequestPhase::kEnded) << "request " << request.id << " ended twice";
  request.phase = RequestPhase::kEnded;
  switch (output.finish) {
    case wire::FinishReason::kStop:
    case wire::FinishReason::kLength:
      ++counts_.completed;
      break;
    case wire::FinishReason::kCancelled:
      ++counts_.cancelled;
      break;
    case wire::FinishReason::kError:
      ++counts_.failed;
      break;
    case wire::FinishReason::kNone:
      INVARIANT(false) << "request " << request.id << " has no end";
  }
  output.usage = {.prompt_tokens = request.num_prompt,
                  .completion_tokens = request.num_output(),
                  .cached_tokens = request.cached_tokens};
  count_end(request, output);
  if (planted(PlantedBug::kWrongUsage)) ++output.usage.completion_tokens;
  if (planted(PlantedBug::kCountTwice) && output.finish == wire::FinishReason::kLength) {
    ++counts_.completed;
  }
  if (planted(PlantedBug::kEndTwice) && output.finish == wire::FinishReason::kStop) {
    outputs_.push_back(output);
  }
  const bool is_dropped =
      planted(PlantedBug::kDropFinish) && output.finish == wire::FinishReason::kCancelled;
  if (!is_dropped) outputs_.push_back(std::move(output));
  if (request.charged_output) {
    const auto charged = static_cast<std::int64_t>(*request.charged_output);
    settlements_.push_back({.model_index = request.model_index,
                            .tenant = std::move(request.tenant),
                            .correction = request.num_output() - charged});
  }
  deadlines_.erase({request.deadline, request.id});
  requests_.erase(request.id);
}

/// Its newest token has come.
void Ledger::count_token(LiveRequest& request) {
  ModelStats& stats = stats_[request.model_index];
  ++stats.total_generation_tokens;
  if (request.num_output() == 1) {
    stats.time_to_first_token_s.observe(seconds(now_ - request.times.accepted));
    stats.total_prompt_tokens += request.num_prompt;
    stats.total_cached_tokens += request.cached_tokens;
  } else {
    stats.inter_token_s.observe(seconds(now_ - request.times.last_token));
  }
  request.times.last_token = now_;
}

void Ledger::count_end(const LiveRequest& request, const Output& output) {
  ModelStats& stats = stats_[request.model_index];
  ++stats.finished[static_cast<std::size_t>(output.finish)];
  if (output.finish == wire::FinishReason::kError) {
    ++stats.failed[static_cast<std::size_t>(output.status.code())];
  }
  if (request.only_scores()) stats.total_prompt_tokens += request.num_prompt;
  stats.request_s.observe(seconds(now_ - request.times.accepted));
  stats.prompt_tokens.observe(request.num_prompt);
  stats.generation_tokens.observe(request.num_output());
}

std::vector<LiveRequest*> Ledger::expired(TimePoint now) {
  std::vector<LiveRequest*> late;
  for (auto it = deadlines_.begin(); it != deadlines_.end() && it->first <= now; ++it) {
    late.push_back(find(it->second));
  }
  return late;
}

TimePoint Ledger::next_deadline() const {
  return deadlines_.empty() ? kNever : deadlines_.begin()->first;
}

void Ledger::audit() const {
  INVARIANT_EQ(counts_.accepted,
               counts_.completed + counts_.failed + counts_.cancelled + requests_.size());
  INVARIANT_EQ(deadlines_.size(), requests_.size());
  for (const auto& [id, request] : requests_) {
    INVARIANT_EQ(id, request->id);
    INVARIANT(request->phase != RequestPhase::kEnded) << "request " << id << " ended but kept";
    INVARIANT_LE(request->num_output(), request->max_tokens());
    INVARIANT_EQ(request->stream->num_tokens(), request->num_output());
  }
}

}  // namespace brigade::router
