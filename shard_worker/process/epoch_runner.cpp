// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/process/epoch_runner.h"

#include <span>
#include <utility>

#include "common/base/strings.h"
#include "shard_worker/collectives/shared_memory.h"
#include "shard_worker/collectives/solo.h"

namespace brigade::worker {
namespace {

std::uint32_t to_us(Duration duration) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
}

SequenceLimits make_limits(const wire::Assign& assign, std::uint64_t num_kv_blocks,
                           std::int64_t vocab_size) {
  return {.epoch = assign.epoch,
          .max_seqs = assign.max_seqs,
          .max_step_tokens = assign.max_step_tokens,
          .num_kv_blocks = num_kv_blocks,
          .vocab_size = vocab_size};
}

/// Bounds on what a router may ask, before memory is taken for it.
Status check_limits(const wire::Assign& assign, std::uint64_t num_kv_blocks) {
  constexpr std::uint32_t kMaxSlots = 1U << 16;
  if (assign.max_seqs == 0 || assign.max_seqs > kMaxSlots) {
    return invalid_argument(
        str_cat("assign: max_seqs ", assign.max_seqs, " is not in [1, ", kMaxSlots, ']'));
  }
  if (assign.max_step_tokens == 0 || assign.max_step_tokens > wire::kMaxStageRows) {
    return invalid_argument(str_cat("assign: max_step_tokens ", assign.max_step_tokens,
                                    " is not in [1, ", wire::kMaxStageRows, ']'));
  }
  if (num_kv_blocks == 0 || num_kv_blocks > kMaxKvBlocks) {
    return invalid_argument(
        str_cat("start: num_kv_blocks ", num_kv_blocks, " is not in [1, ", kMaxKvBlocks, ']'));
  }
  return {};
}

}  // namespace

EpochRunner::EpochRunner(Options options, Engine& engine, StageLink& link, AbortSwitch& abort,
                         LinkPlan plan)
    : options_(std::move(options)),
      engine_(engine),
      link_(link),
      abort_(abort),
      plan_(std::move(plan)),
      timeout_(std::chrono::milliseconds(options_.assign.collective_timeout_ms)),
      table_(make_limits(options_.assign, options_.num_kv_blocks, engine.vocab_size())),
      samples_(options_.assign.max_seqs, engine.vocab_size()) {}

EpochRunner::~EpochRunner() {
  abort_.set_group(nullptr);
  if (group_) group_->abort();  // peers must not wait for a rank that has left
  link_.close();
}

Result<std::unique_ptr<EpochRunner>> EpochRunner::start(Options options, Engine& engine,
                                                        StageLink& link, AbortSwitch& abort) {
  RETURN_IF_ERROR(check_limits(options.assign, options.num_kv_blocks));
  ASSIGN_OR_RETURN(LinkPlan plan, make_link_plan(options.assign, engine.hidden_size()));
  RETURN_IF_ERROR(engine.allocate_kv(options.num_kv_blocks));
  std::unique_ptr<EpochRunner> runner(
      new EpochRunner(std::move(options), engine, link, abort, std::move(plan)));
  RETURN_IF_ERROR(runner->join());
  return runner;
}

Status EpochRunner::join() {
  const TimePoint until = deadline();
  ASSIGN_OR_RETURN(group_, join_group(until));
  abort_.set_group(group_.get());
  return link_.open(plan_, abort_.token(), until);
}

Result<std::unique_ptr<Collective>> EpochRunner::join_group(TimePoint until) {
  const wire::StageInfo& stage = options_.assign.stages[plan_.stage];
  for (const std::string& host : stage.host_ids) {
    if (host != stage.host_ids[plan_.tp_rank]) {
      return invalid_argument("the ranks of a stage must share a host");
    }
  }
  if (stage.tp_size == 1) return make_solo_collective();
  return attach_shared_memory({.group_name = options_.assign.group_name,
                               .epoch = plan_.epoch,
                               .rank = static_cast<int>(plan_.tp_rank),
                               .size = static_cast<int>(stage.tp_size),
                               .spin = options_.spin},
                              until, abort_.token());
}

/// Until the engine can begin: the command checked and agreed on, tokens and activations here.
Status EpochRunner::get_ready(const wire::StepCommand& command) {
  RETURN_IF_ERROR(table_.apply(command, inputs_));
  if (group_->size() > 1) RETURN_IF_ERROR(group_->agree(inputs_.plan_hash, deadline()));
  hidden_.resize(static_cast<std::size_t>(inputs_.num_tokens()) * plan_.hidden_size);
  if (plan_.first_stage()) return fill_pending();
  return link_.receive_hidden(inputs_, hidden_, deadline());
}

Status EpochRunner::fill_pending() {
  if (!plan_.gets_samples()) return share_pending();
  RETURN_IF_ERROR(link_.receive_samples(LastSamples::needed_step(inputs_), samples_, deadline()));
  return samples_.resolve(inputs_);
}

/// A pipeline of one stage: rank 0 has drawn the tokens itself and tells its group.
Status EpochRunner::share_pending() {
  if (plan_.tp_rank == 0) RETURN_IF_ERROR(samples_.resolve(inputs_));
  if (group_->size() == 1 || inputs_.pending_tokens.empty()) return {};
  pending_.resize(inputs_.pending_tokens.size());
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    pending_[i] = inputs_.tokens[static_cast<std::size_t>(inputs_.pending_tokens[i].row)];
  }
  RETURN_IF_ERROR(group_->broadcast(std::as_writable_bytes(std::span(pending_)), deadline()));
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    inputs_.tokens[static_cast<std::size_t>(inputs_.pending_tokens[i].row)] = pending_[i];
  }
  return {};
}

/// Activations to the next stage, samples to the first: before the router hears of the step.
Status EpochRunner::hand_on() {
  if (!plan_.last_stage()) return link_.send_hidden(inputs_, hidden_, deadline());
  if (plan_.tp_rank != 0) return {};
  sampled_ = {.epoch = inputs_.epoch,
              .step = inputs_.step,
              .lane = inputs_.lane,
              .plan_hash = inputs_.plan_hash,
              .seq = std::move(sampled_.seq),
              .token = std::move(sampled_.token)};
  sampled_.seq.clear();
  sampled_.token.clear();
  for (const ScoredToken& token : scored_) {
    if (!token.sampled) continue;
    sampled_.seq.push_back(token.seq);
    sampled_.token.push_back(token.token);
  }
  if (sampled_.seq.empty()) return {};
  if (plan_.first_stage()) return samples_.record(sampled_.step, sampled_.seq, sampled_.token);
  return link_.send_samples(sampled_, deadline());
}

wire::StepResult EpochRunner::make_result() const {
  wire::StepResult result{.epoch = inputs_.epoch,
                          .step = inputs_.step,
                          .lane = inputs_.lane,
                          .plan_hash = inputs_.plan_hash,
                          .cu_top = {0},
                          .compute_us = to_us(times_.compute),
                          .wait_us = to_us(times_.wait)};
  for (const ScoredToken& token : scored_) {
    result.seq.push_back(token.seq);
    result.position.push_back(token.position);
    result.token.push_back(token.token);
    const int kind = token.sampled ? wire::kSampledEntry : wire::kPromptEntry;
    result.sampled.push_back(static_cast<std::uint8_t>(kind | token.fault));
    result.logprob.push_back(token.logprob);
    result.top_tokens.insert(result.top_tokens.end(), token.top_tokens.begin(),
                             token.top_tokens.end());
    result.top_logprobs.insert(result.top_logprobs.end(), token.top_logprobs.begin(),
                               token.top_logprobs.end());
    result.cu_top.push_back(static_cast<std::uint32_t>(result.top_tokens.size()));
  }
  return result;
}

Result<std::optional<wire::StepResult>> EpochRunner::run(const wire::StepCommand& command) {
  const TimePoint begin = Clock::now();
  RETURN_IF_ERROR(get_ready(command));
  const TimePoint ready = Clock::now();
  scored_.clear();
  if (inputs_.num_tokens() > 0) {
    RETURN_IF_ERROR(engine_.run(inputs_, *group_, ready + timeout_, hidden_, scored_));
  }
  const TimePoint computed = Clock::now();
  RETURN_IF_ERROR(hand_on());
  times_ = {.wait = ready - begin, .compute = computed - ready, .link = Clock::now() - computed};
  if (!reports_results()) return std::optional<wire::StepResult>();
  if (scored_.size() != inputs_.score_rows.size()) {
    return internal_error(str_cat("step ", inputs_.step, ": the engine scored ", scored_.size(),
                                  " rows, not ", inputs_.score_rows.size()));
  }
  return std::optional(make_result());
}

}  // namespace brigade::worker
