// SPDX-License-Identifier: Apache-2.0
#include "tests/router/core/support/sim_worker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "tests/router/core/support/fake_model.h"
#include "tests/router/core/support/world.h"

namespace brigade::router::testing {
namespace {

constexpr std::uint64_t kCopied = ~std::uint64_t{0};  ///< in block_owner_

}  // namespace

SimWorker::SimWorker(World& world, WorkerId id, wire::Hello hello)
    : world_(world), id_(id), hello_(std::move(hello)) {}

void SimWorker::receive(const wire::ToWorker& message) {
  if (hung_) {
    held_.push_back([this, message] { receive(message); });
    return;
  }
  if (const auto* assign = std::get_if<wire::Assign>(&message)) on_assign(*assign);
  if (const auto* start = std::get_if<wire::Start>(&message)) on_start(*start);
  if (const auto* command = std::get_if<wire::StepCommand>(&message)) on_command(*command);
  if (const auto* abort = std::get_if<wire::Abort>(&message)) {
    if (abort->epoch == epoch_) {
      reset();
      heartbeat();  // tells that it is out of the epoch
    }
  }
  if (std::holds_alternative<wire::Release>(message)) {
    world_.send_to_router(id_, wire::Goodbye{.reason = "released"});
    world_.leave(id_);
  }
}

void SimWorker::resume() {
  hung_ = false;
  for (const std::function<void()>& event : std::exchange(held_, {}))
    event();
  try_run();
}

void SimWorker::reset() {
  ++generation_;
  epoch_ = 0;
  ready_ = false;
  free_since_ = TimePoint::min();
  busy_ = false;
  last_step_ = 0;
  commands_.clear();
  activations_.clear();
  samples_.clear();
  slots_.clear();
}

void SimWorker::fail(const std::string& reason) {
  if (epoch_ == 0 || hung_) return;
  world_.send_to_router(id_, wire::Failed{.epoch = epoch_, .status = unavailable(reason)});
  reset();
}

void SimWorker::on_assign(const wire::Assign& assign) {
  reset();
  assign_ = assign;
  epoch_ = assign.epoch;
  slots_.resize(assign.max_seqs);
  const std::uint64_t generation = generation_;
  world_.after(world_.options().load_time, [this, generation] {
    if (generation != generation_ || hung_) return;
    world_.send_to_router(id_, wire::LoadProgress{.epoch = epoch_, .fraction = 0.5F});
    if (world_.next_load_fails()) {
      fail("cannot read the weights");
      return;
    }
    world_.send_to_router(
        id_, wire::Loaded{.epoch = epoch_, .max_kv_blocks = world_.options().kv_blocks});
  });
}

void SimWorker::on_start(const wire::Start& start) {
  if (start.epoch != epoch_) return;
  kv_.assign(start.num_kv_blocks * wire::kBlockSize, -1);
  block_owner_.assign(start.num_kv_blocks, 0);
  ready_ = true;
  world_.send_to_router(id_, wire::Ready{.epoch = epoch_});
}

void SimWorker::on_command(const wire::StepCommand& command) {
  if (command.epoch != epoch_) return;
  INVARIANT(ready_) << "a step before the worker was ready";
  world_.compare_plans(command);
  if (assign_.tp_rank != 0) return;  // the other ranks of a stage do as rank 0 does
  commands_.push_back(command);
  try_run();
}

void SimWorker::on_activations(std::uint64_t epoch, std::uint64_t step,
                               std::vector<std::int32_t> tokens, std::vector<std::uint64_t> tails) {
  if (epoch != epoch_) return;
  activations_[step] = {std::move(tokens), std::move(tails)};
  try_run();
}

void SimWorker::on_sample(std::uint64_t epoch, std::uint64_t step, std::uint32_t slot,
                          std::int32_t token) {
  if (epoch != epoch_) return;
  samples_[{step, slot}] = token;
  try_run();
}

void SimWorker::heartbeat() {
  if (hung_) return;
  world_.send_to_router(
      id_, wire::Heartbeat{.epoch = epoch_,
                           .last_step = last_step_,
                           .queued_steps = static_cast<std::uint32_t>(commands_.size()),
                           .running = busy_});
}

bool SimWorker::inputs_are_here(const wire::StepCommand& command) const {
  if (assign_.pp_stage > 0) return activations_.contains(command.step);
  for (std::size_t i = 0; i < command.num_seqs(); ++i) {
    if ((command.flags[i] & wire::kTokenFromSample) == 0) continue;
    const std::uint32_t slot = command.seq[i];
    if (!samples_.contains({slots_[slot].last_step, slot})) return false;
  }
  return true;
}

void SimWorker::try_run() {
  if (busy_ || hung_ || commands_.empty() || !inputs_are_here(commands_.front())) return;
  busy_ = true;
  wire::StepCommand command = std::move(commands_.front());
  commands_.pop_front();
  const Duration time = world_.step_time(command.tokens.size());
  busy_time_ += time;
  // The first step of an epoch waited for no one.
  wait_us_ = free_since_ == TimePoint::min()
                 ? 0
                 : static_cast<std::uint32_t>((world_.now() - free_since_).count() / 1000);
  const std::uint64_t generation = generation_;
  world_.after(time, [this, generation, command = std::move(command)]() mutable {
    if (generation != generation_) return;
    if (hung_) {
      held_.push_back([this, generation, command = std::move(command)]() mutable {
        if (generation == generation_) finish_step(std::move(command));
      });
      return;
    }
    finish_step(std::move(command));
  });
}

void SimWorker::apply_slots(const wire::StepCommand& command) {
  INVARIANT_EQ(command.step, last_step_ + 1);
  last_step_ = command.step;
  for (const std::uint32_t id : command.release) {
    INVARIANT(slots_[id].open) << "slot " << id;
    slots_[id].open = false;
  }
  for (const wire::SequenceAdmit& admit : command.admit) {
    Slot& slot = slots_[admit.seq];
    INVARIANT(!slot.open) << "slot " << admit.seq;
    slot = {.open = true, .uid = ++next_uid_, .params = admit};
  }
  for (std::size_t i = 0; i < command.num_seqs(); ++i) {
    std::vector<std::uint32_t>& blocks = slots_[command.seq[i]].blocks;
    blocks.insert(blocks.end(), command.blocks.begin() + command.cu_blocks[i],
                  command.blocks.begin() + command.cu_blocks[i + 1]);
  }
}

/// The step's tokens, samples filled in: on the first stage from what came from the last, else from
/// the activations.
std::vector<std::int32_t> SimWorker::resolve(const wire::StepCommand& command) {
  if (assign_.pp_stage > 0) return std::move(activations_.at(command.step).tokens);
  std::vector<std::int32_t> tokens = command.tokens;
  for (std::size_t i = 0; i < command.num_seqs(); ++i) {
    if ((command.flags[i] & wire::kTokenFromSample) == 0) continue;
    const std::uint32_t slot = command.seq[i];
    tokens[command.cu_tokens[i]] = samples_.at({slots_[slot].last_step, slot});
  }
  return tokens;
}

void SimWorker::write_kv(const Slot& slot, std::uint32_t position, std::int32_t token) {
  const std::uint32_t block = slot.blocks[position / wire::kBlockSize];
  if (block_owner_[block] != slot.uid) {
    // What another wrote there must not be read any more.
    if (std::exchange(block_owner_[block], slot.uid) != kCopied)
      std::fill_n(kv_.begin() + block * wire::kBlockSize, wire::kBlockSize, -1);
  }
  kv_[block * wire::kBlockSize + position % wire::kBlockSize] = token;
}

void SimWorker::copy_block(std::uint32_t from, std::uint32_t to) {
  // Nobody's yet: the slot that writes there first keeps what was copied.
  block_owner_[to] = kCopied;
  std::copy_n(kv_.begin() + from * wire::kBlockSize, wire::kBlockSize,
              kv_.begin() + to * wire::kBlockSize);
}

std::uint64_t SimWorker::read_tail(const Slot& slot, std::uint32_t position) const {
  std::vector<std::int32_t> tail;
  for (std::uint32_t p = position + 1 - std::min(position + 1, kTail); p <= position; ++p) {
    const std::uint32_t block = slot.blocks[p / wire::kBlockSize];
    tail.push_back(kv_[block * wire::kBlockSize + p % wire::kBlockSize]);
    INVARIANT_NE(tail.back(), -1) << "block " << block << " is read before it is written";
  }
  return tail_hash(tail, position);
}

void SimWorker::finish_step(wire::StepCommand command) {
  busy_ = false;
  free_since_ = world_.now();
  Activations step{.tokens = resolve(command), .tails = {}};
  apply_slots(command);
  for (std::size_t i = 0; i < command.copy_from.size(); ++i) {
    copy_block(command.copy_from[i], command.copy_to[i]);
  }
  for (std::size_t i = 0; i < command.num_seqs(); ++i) {
    Slot& slot = slots_[command.seq[i]];
    INVARIANT(slot.open) << "slot " << command.seq[i];
    slot.last_step = command.step;
    std::uint32_t position = command.position[i];
    for (std::uint32_t row = command.cu_tokens[i]; row < command.cu_tokens[i + 1]; ++row) {
      write_kv(slot, position++, step.tokens[row]);
    }
    step.tails.push_back(read_tail(slot, position - 1));
  }
  if (assign_.pp_stage > 0) {
    // Every stage keeps its own KV: they must all have the same history.
    INVARIANT(activations_.at(command.step).tails == step.tails) << "step " << command.step;
    activations_.erase(command.step);
  }
  if (is_last()) {
    report(command, step);
  } else {
    world_.send_activations(epoch_, assign_.pp_stage + 1, command.step, std::move(step.tokens),
                            std::move(step.tails));
  }
  while (!samples_.empty() && samples_.begin()->first.first + 64 < command.step) {
    samples_.erase(samples_.begin());
  }
  try_run();
}

void SimWorker::add_entry(wire::StepResult& result, const Slot& slot, std::uint32_t position,
                          std::int32_t token, bool sampled) const {
  const std::int32_t wanted = sampled ? slot.params.num_logprobs : slot.params.num_prompt_logprobs;
  result.seq.push_back(static_cast<std::uint32_t>(&slot - slots_.data()));
  result.position.push_back(position);
  result.token.push_back(token);
  result.sampled.push_back(sampled ? 1 : 0);
  result.logprob.push_back(wanted < 0 ? std::numeric_limits<float>::quiet_NaN()
                                      : fake_logprob(token, position));
  for (std::int32_t i = 0; i < wanted; ++i) {
    result.top_tokens.push_back((token + i) % FakeTokenizer::kVocabSize);
    result.top_logprobs.push_back(fake_logprob(token, position) - static_cast<float>(i));
  }
  result.cu_top.push_back(static_cast<std::uint32_t>(result.top_tokens.size()));
}

void SimWorker::report(const wire::StepCommand& command, const Activations& step) {
  wire::StepResult result{.epoch = epoch_,
                          .step = command.step,
                          .lane = command.lane,
                          .plan_hash = wire::plan_hash(command),
                          .cu_top = {0},
                          .compute_us = static_cast<std::uint32_t>(
                              world_.step_time(command.tokens.size()).count() / 1000),
                          .wait_us = wait_us_};
  for (std::size_t i = 0; i < command.num_seqs(); ++i) {
    const Slot& slot = slots_[command.seq[i]];
    const std::uint32_t begin = command.cu_tokens[i];
    const std::uint32_t end = command.cu_tokens[i + 1];
    const std::uint32_t position = command.position[i];
    if ((command.flags[i] & wire::kScorePrompt) != 0) {
      for (std::uint32_t row = begin; row < end; ++row) {
        const std::int32_t target = row + 1 < end ? step.tokens[row + 1] : command.next_token[i];
        if (target != -1) add_entry(result, slot, position + row - begin + 1, target, false);
      }
    }
    if ((command.flags[i] & wire::kSampleToken) == 0) continue;
    const std::uint32_t sampled_position = position + end - begin;
    const std::int32_t token = sample_token(step.tails[i], sampled_position, slot.params);
    add_entry(result, slot, sampled_position, token, true);
    world_.send_sample(epoch_, command.step, command.seq[i], token);
  }
  world_.send_to_router(id_, std::move(result));
}

}  // namespace brigade::router::testing
