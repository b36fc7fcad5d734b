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

constexpr std::uint64_t kCopied = ~std::uint64_t{0};  ///< a Block's uid

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
  kv_.assign(start.num_kv_blocks * wire::kBlockSize, 0);
  blocks_.assign(start.num_kv_blocks, {});
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
                               std::vector<std::int32_t> tokens,
                               std::vector<std::uint64_t> histories) {
  if (epoch != epoch_) return;
  INVARIANT(!activations_.contains(step)) << "activations of step " << step << " came twice";
  activations_[step] = {std::move(tokens), std::move(histories)};
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
    append_blocks(
        slots_[command.seq[i]],
        std::span(command.blocks)
            .subspan(command.cu_blocks[i], command.cu_blocks[i + 1] - command.cu_blocks[i]),
        command.position[i]);
  }
}

std::uint64_t SimWorker::tenant_of(const Slot& slot) const {
  return world_.options().tenant_in_seed ? slot.params.seed % kMaxSimTenants : 0;
}

void SimWorker::append_blocks(Slot& slot, std::span<const std::uint32_t> blocks,
                              std::uint32_t position) {
  for (const std::uint32_t block : blocks) {
    slot.blocks.push_back(block);
    // What lies before its first position it has not computed itself: it must be whole by now.
    const bool is_found = slot.blocks.size() * wire::kBlockSize <= position;
    if (is_found) {
      INVARIANT_NE(kv_[block * wire::kBlockSize + wire::kBlockSize - 1], 0U)
          << "block " << block << " is shared before it is filled";
      world_.note("prefix found in the cache");
    }
    slot.fillings.push_back(is_found ? blocks_[block].filling : 0);
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

void SimWorker::write_kv(Slot& slot, std::uint32_t position, std::int32_t token) {
  const std::size_t index = position / wire::kBlockSize;
  const std::uint32_t id = slot.blocks[index];
  Block& block = blocks_[id];
  if (block.uid != slot.uid && block.uid == kCopied) {
    INVARIANT_EQ(block.tenant, tenant_of(slot)) << "block " << id << " is a copy of another's";
    block.uid = slot.uid;
    slot.fillings[index] = block.filling;
  }
  if (block.uid != slot.uid) {
    block = {.uid = slot.uid, .filling = block.filling + 1, .tenant = tenant_of(slot)};
    slot.fillings[index] = block.filling;
    // What another wrote there must not be read any more.
    std::fill_n(kv_.begin() + id * wire::kBlockSize, wire::kBlockSize, 0);
  }
  const std::uint64_t before = position == 0 ? 0 : read_history(slot, position - 1);
  kv_[id * wire::kBlockSize + position % wire::kBlockSize] = history_hash(before, token);
}

void SimWorker::copy_block(std::uint32_t from, std::uint32_t to) {
  // Nobody's yet: the slot that writes there first keeps what was copied.
  blocks_[to] = {
      .uid = kCopied, .filling = blocks_[to].filling + 1, .tenant = blocks_[from].tenant};
  std::copy_n(kv_.begin() + from * wire::kBlockSize, wire::kBlockSize,
              kv_.begin() + to * wire::kBlockSize);
  world_.note("last block of a prompt copied for a fork");
}

std::uint64_t SimWorker::read_history(const Slot& slot, std::uint32_t position) const {
  const std::uint32_t id = slot.blocks[position / wire::kBlockSize];
  const std::uint64_t history = kv_[id * wire::kBlockSize + position % wire::kBlockSize];
  INVARIANT_NE(history, 0U) << "block " << id << " is read before it is written";
  return history;
}

/// A block in use by its slot is the one that it filled or found, and of its tenant.
void SimWorker::check_blocks(const Slot& slot, std::uint32_t num_positions) const {
  for (std::size_t i = 0; i * wire::kBlockSize < num_positions; ++i) {
    const Block& block = blocks_[slot.blocks[i]];
    INVARIANT_EQ(block.filling, slot.fillings[i])
        << "block " << slot.blocks[i] << " was given to another while it is read";
    INVARIANT_EQ(block.tenant, tenant_of(slot))
        << "block " << slot.blocks[i] << " is of another tenant";
  }
}

void SimWorker::finish_step(wire::StepCommand command) {
  busy_ = false;
  free_since_ = world_.now();
  Activations step{.tokens = resolve(command), .histories = {}};
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
    check_blocks(slot, position);
    step.histories.push_back(read_history(slot, position - 1));
  }
  if (assign_.pp_stage > 0) {
    // Every stage keeps its own KV: they must all have the same history.
    INVARIANT(activations_.at(command.step).histories == step.histories) << "step " << command.step;
    activations_.erase(command.step);
  }
  if (is_last()) {
    report(command, step);
  } else {
    world_.send_activations(epoch_, assign_.pp_stage + 1, command.step, std::move(step.tokens),
                            std::move(step.histories));
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
    const std::int32_t token = sample_token(step.histories[i], sampled_position, slot.params);
    add_entry(result, slot, sampled_position, token, true);
    world_.send_sample(epoch_, command.step, command.seq[i], token);
  }
  world_.send_to_router(id_, std::move(result));
}

}  // namespace brigade::router::testing
