// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/model/spec.h"
#include "shard_worker/core/sequence_table.h"
#include "shard_worker/model/decoder_engine.h"

namespace brigade::test {

struct GridOptions {
  std::string model_path;
  std::uint32_t tp_size = 1;
  std::uint32_t pp_size = 1;
  wire::ActivationMode activations = wire::ActivationMode::kInt8;
  wire::KvType kv_type = wire::KvType::kF16;
  std::uint32_t max_step_tokens = 512;
  std::uint64_t num_kv_blocks = 512;
  bool reference_ops = false;  ///< the oracle instead of the CPU ops
};

/// A piece of one sequence in one step.
struct Piece {
  std::uint32_t seq = 0;
  std::vector<std::int32_t> tokens;
  std::uint8_t flags = 0;        ///< wire::StepFlags
  std::int32_t next_token = -1;  ///< with kScorePrompt
};

/// A whole replica in one process: an engine for each rank, TP ranks of a stage on threads, stages
/// one after another. Plays the router's part too: it gives out KV blocks and makes StepCommands,
/// which go through a SequenceTable. Errors end the test.
class EngineGrid {
 public:
  explicit EngineGrid(const GridOptions& options);

  /// Runs one step. Sequences it has not seen are admitted, with the parameters of `params` where
  /// there are some.
  std::vector<worker::ScoredToken> step(const std::vector<Piece>& pieces);
  /// As step, but errors are handed out.
  Result<std::vector<worker::ScoredToken>> try_step(const std::vector<Piece>& pieces);
  /// Frees the sequence's blocks with the next step.
  void release(std::uint32_t seq);
  /// Lets `to`, not seen yet, begin at `position` of `from`: it shares the whole blocks before, and
  /// the one with that position is copied by the next step. `from` must outlive it.
  void fork(std::uint32_t from, std::uint32_t to, std::uint32_t position);
  /// How to sample for a sequence not yet admitted.
  void set_params(const wire::SequenceAdmit& params);

  /// Sees each wanted row's whole logits of a step, when it has ended.
  using LogitsObserver = std::function<void(const worker::ScoreRow&, std::span<const float>)>;
  void observe_logits(LogitsObserver observer);
  [[nodiscard]] const model::ModelSpec& spec() const { return spec_; }
  [[nodiscard]] std::uint64_t weight_bytes() const;

 private:
  struct Rank {
    std::unique_ptr<worker::Collective> group;
    std::unique_ptr<worker::DecoderEngine> engine;
    std::vector<float> hidden;
    std::vector<std::pair<Range, std::vector<float>>> seen;  ///< shares of logits in this step
  };
  struct Sequence {
    bool open = false;
    std::uint32_t position = 0;
    std::vector<std::uint32_t> blocks;
    std::uint32_t num_shared = 0;  ///< blocks of the sequence it was forked from
    wire::SequenceAdmit params;
  };

  void load(const GridOptions& options);
  wire::StepCommand command_for(const std::vector<Piece>& pieces);
  Status run_stage(std::vector<Rank>& stage, const worker::StepInputs& inputs,
                   std::vector<worker::ScoredToken>& scored);
  void show_logits(const worker::StepInputs& inputs);

  model::ModelSpec spec_;
  std::vector<std::vector<Rank>> stages_;  ///< [pp_stage][tp_rank]
  std::unique_ptr<worker::SequenceTable> table_;
  std::vector<Sequence> sequences_;
  std::vector<std::uint32_t> free_blocks_;
  std::vector<std::uint32_t> released_;
  std::vector<std::uint32_t> copy_from_;
  std::vector<std::uint32_t> copy_to_;
  std::uint64_t step_ = 0;
  LogitsObserver observer_;
};

}  // namespace brigade::test
