// SPDX-License-Identifier: Apache-2.0
#include "tests/support/engine_grid.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "common/base/check.h"
#include "common/model/gguf.h"
#include "tests/support/thread_group.h"

namespace brigade::test {
namespace {

constexpr std::uint32_t kMaxSeqs = 64;
constexpr std::chrono::minutes kStepLimit{2};

template <typename T>
T must(Result<T> result) {
  INVARIANT(result.ok()) << result.status().message();
  return std::move(result).value();
}

void must(const Status& status) {
  INVARIANT(status.ok()) << status.message();
}

std::unique_ptr<kernels::Ops> make_ops(bool reference, kernels::ActivationMode mode) {
  return reference ? kernels::make_reference_ops(mode)
                   : kernels::make_cpu_ops({.num_threads = 1, .activations = mode});
}

}  // namespace

EngineGrid::EngineGrid(const GridOptions& options) : sequences_(kMaxSeqs) {
  const auto file = must(model::GgufFile::open(options.model_path));
  spec_ = must(model::read_spec(*file));
  must(model::check_grid(spec_, options.tp_size, options.pp_size));
  load(options);
  table_ = std::make_unique<worker::SequenceTable>(
      worker::SequenceLimits{.epoch = 1,
                             .max_seqs = kMaxSeqs,
                             .max_step_tokens = options.max_step_tokens,
                             .num_kv_blocks = options.num_kv_blocks,
                             .vocab_size = spec_.vocab_size});
  free_blocks_.resize(options.num_kv_blocks);
  std::iota(free_blocks_.rbegin(), free_blocks_.rend(), 0U);
}

void EngineGrid::load(const GridOptions& options) {
  wire::Assign assign{.epoch = 1, .model_path = options.model_path};
  assign.activations = options.activations;
  assign.kv_type = options.kv_type;
  assign.max_step_tokens = options.max_step_tokens;
  for (const Range& layers : model::split_layers(spec_, options.pp_size)) {
    assign.stages.push_back({.layers = layers, .tp_size = options.tp_size});
  }
  for (assign.pp_stage = 0; assign.pp_stage < options.pp_size; ++assign.pp_stage) {
    auto groups = make_thread_group(static_cast<int>(options.tp_size));
    std::vector<Rank> stage;
    for (assign.tp_rank = 0; assign.tp_rank < options.tp_size; ++assign.tp_rank) {
      Rank rank;
      rank.group = std::move(groups[assign.tp_rank]);
      rank.engine = std::make_unique<worker::DecoderEngine>(
          [reference = options.reference_ops](kernels::ActivationMode mode) {
            return make_ops(reference, mode);
          });
      must(rank.engine->load(assign, [](float) {}));
      must(rank.engine->allocate_kv(options.num_kv_blocks));
      stage.push_back(std::move(rank));
    }
    stages_.push_back(std::move(stage));
  }
}

void EngineGrid::observe_logits(LogitsObserver observer) {
  observer_ = std::move(observer);
  for (Rank& rank : stages_.back()) {
    rank.engine->observe_logits(
        [&seen = rank.seen](const worker::ScoreRow&, Range vocab, std::span<const float> logits) {
          seen.push_back({vocab, {logits.begin(), logits.end()}});
        });
  }
}

/// Hands on the rows of the last step, the ranks' shares put together.
void EngineGrid::show_logits(const worker::StepInputs& inputs) {
  if (!observer_) return;
  std::vector<float> whole(static_cast<std::size_t>(spec_.vocab_size));
  for (std::size_t i = 0; i < inputs.score_rows.size(); ++i) {
    for (const Rank& rank : stages_.back()) {
      const auto& [vocab, logits] = rank.seen[i];
      std::copy(logits.begin(), logits.end(), whole.begin() + vocab.begin);
    }
    observer_(inputs.score_rows[i], whole);
  }
}

std::uint64_t EngineGrid::weight_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& stage : stages_) {
    for (const Rank& rank : stage)
      sum += rank.engine->weight_bytes();
  }
  return sum;
}

void EngineGrid::set_params(const wire::SequenceAdmit& params) {
  INVARIANT(!sequences_[params.seq].open) << params.seq;
  sequences_[params.seq].params = params;
}

void EngineGrid::release(std::uint32_t seq) {
  Sequence& sequence = sequences_[seq];
  INVARIANT(sequence.open) << seq;
  free_blocks_.insert(free_blocks_.end(), sequence.blocks.rbegin(),
                      sequence.blocks.rend() - sequence.num_shared);
  sequence = {};
  released_.push_back(seq);
}

void EngineGrid::fork(std::uint32_t from, std::uint32_t to, std::uint32_t position) {
  Sequence& child = sequences_[to];
  INVARIANT(!child.open && child.blocks.empty()) << to;
  child.position = position;
  child.num_shared = position / wire::kBlockSize;
  const std::vector<std::uint32_t>& blocks = sequences_[from].blocks;
  child.blocks.assign(blocks.begin(), blocks.begin() + child.num_shared);
  copy_from_.push_back(blocks[child.num_shared]);
  copy_to_.push_back(free_blocks_.back());
  child.blocks.push_back(free_blocks_.back());
  free_blocks_.pop_back();
}

wire::StepCommand EngineGrid::command_for(const std::vector<Piece>& pieces) {
  wire::StepCommand command{.epoch = 1, .step = ++step_};
  command.release = std::exchange(released_, {});
  command.copy_from = std::exchange(copy_from_, {});
  command.copy_to = std::exchange(copy_to_, {});
  command.cu_tokens = {0};
  command.cu_blocks = {0};
  for (const Piece& piece : pieces) {
    Sequence& sequence = sequences_[piece.seq];
    if (!sequence.open) {
      sequence.open = true;
      sequence.params.seq = piece.seq;
      if (sequence.params.num_prompt_logprobs < 0) sequence.params.num_prompt_logprobs = 0;
      command.admit.push_back(sequence.params);
      command.blocks.insert(command.blocks.end(), sequence.blocks.begin(), sequence.blocks.end());
    }
    command.seq.push_back(piece.seq);
    command.position.push_back(sequence.position);
    command.flags.push_back(piece.flags);
    command.next_token.push_back(piece.next_token);
    command.tokens.insert(command.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    command.cu_tokens.push_back(static_cast<std::uint32_t>(command.tokens.size()));
    sequence.position += static_cast<std::uint32_t>(piece.tokens.size());
    while (sequence.blocks.size() * wire::kBlockSize < sequence.position) {
      INVARIANT(!free_blocks_.empty()) << "the grid has too few KV blocks for this test";
      sequence.blocks.push_back(free_blocks_.back());
      command.blocks.push_back(free_blocks_.back());
      free_blocks_.pop_back();
    }
    command.cu_blocks.push_back(static_cast<std::uint32_t>(command.blocks.size()));
  }
  return command;
}

Status EngineGrid::run_stage(std::vector<Rank>& stage, const worker::StepInputs& inputs,
                             std::vector<worker::ScoredToken>& scored) {
  const TimePoint deadline = Clock::now() + kStepLimit;
  std::vector<Status> results(stage.size());
  std::vector<std::vector<worker::ScoredToken>> found(stage.size());
  const auto run = [&](std::size_t r) {
    results[r] = stage[r].engine->run(inputs, *stage[r].group, deadline, stage[r].hidden, found[r]);
    if (!results[r].ok()) stage[r].group->abort();
  };
  std::vector<std::thread> threads;
  for (std::size_t r = 1; r < stage.size(); ++r)
    threads.emplace_back(run, r);
  run(0);
  for (std::thread& thread : threads)
    thread.join();
  for (std::size_t r = 0; r < stage.size(); ++r) {
    RETURN_IF_ERROR(results[r]);
    INVARIANT(r == 0 || found[r].empty()) << "rank " << r << " sampled";
    INVARIANT(stage[r].hidden == stage[0].hidden) << "activations of rank " << r << " differ";
  }
  scored = std::move(found[0]);
  return {};
}

Result<std::vector<worker::ScoredToken>> EngineGrid::try_step(const std::vector<Piece>& pieces) {
  worker::StepInputs inputs;
  must(table_->apply(command_for(pieces), inputs));
  for (Rank& rank : stages_.back())
    rank.seen.clear();
  std::vector<worker::ScoredToken> scored;
  // Not a number: what a stage should have written and did not must show.
  std::vector<float> hidden(static_cast<std::size_t>(inputs.num_tokens() * spec_.hidden_size),
                            std::numeric_limits<float>::quiet_NaN());
  for (std::vector<Rank>& stage : stages_) {
    for (Rank& rank : stage)
      rank.hidden = hidden;
    RETURN_IF_ERROR(run_stage(stage, inputs, scored));
    hidden = stage[0].hidden;
  }
  show_logits(inputs);
  return scored;
}

std::vector<worker::ScoredToken> EngineGrid::step(const std::vector<Piece>& pieces) {
  return must(try_step(pieces));
}

}  // namespace brigade::test
