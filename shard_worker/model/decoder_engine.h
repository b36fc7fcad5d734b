// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/model/spec.h"
#include "kernels/op.h"
#include "shard_worker/device/engine.h"
#include "shard_worker/model/decoder.h"
#include "shard_worker/model/sampler.h"
#include "shard_worker/weights/shard_weights.h"

namespace brigade::worker {

/// An Engine that runs a Decoder over any op set. make_cpu_engine gives it the CPU's.
class DecoderEngine final : public Engine {
 public:
  using OpsFactory = std::function<std::unique_ptr<kernels::Ops>(kernels::ActivationMode)>;
  /// Sees this rank's share of each wanted row's logits before they are sampled; last stage.
  using LogitsObserver =
      std::function<void(const ScoreRow&, Range vocab, std::span<const float> logits)>;

  explicit DecoderEngine(OpsFactory make_ops) : make_ops_(std::move(make_ops)) {}

  Status load(const wire::Assign& assign, const std::function<void(float)>& progress) override;
  [[nodiscard]] std::uint64_t weight_bytes() const override;
  [[nodiscard]] std::uint64_t max_kv_blocks(std::uint64_t memory_bytes) const override;
  [[nodiscard]] std::uint64_t kv_block_bytes() const override { return kv_shape().block_bytes(); }
  Status allocate_kv(std::uint64_t num_kv_blocks) override;
  [[nodiscard]] std::int64_t hidden_size() const override { return spec_.hidden_size; }
  [[nodiscard]] std::int64_t vocab_size() const override { return spec_.vocab_size; }
  Status run(const StepInputs& inputs, Collective& group, TimePoint deadline,
             std::span<float> hidden, std::vector<ScoredToken>& scored) override;

  void observe_logits(LogitsObserver observer) { observer_ = std::move(observer); }

 private:
  /// What the weights in memory are of; an Assign with an equal one keeps them.
  struct Key {
    std::string path;
    std::string digest;
    Shard shard;
    wire::ActivationMode activations = wire::ActivationMode::kInt8;
    friend bool operator==(const Key&, const Key&) = default;
  };

  Status load_weights(const wire::Assign& assign, const std::function<void(float)>& progress);
  [[nodiscard]] kernels::KvShape kv_shape() const;
  [[nodiscard]] Status check_tokens(const StepInputs& inputs) const;
  /// Scores and samples the step's rows, in order.
  Status sample(const StepInputs& inputs, Collective& group, TimePoint deadline,
                std::span<const float> hidden, std::vector<ScoredToken>& scored);
  /// Rows that need their logits.
  Status sample_rows(std::span<const ScoreRow> rows, Collective& group, TimePoint deadline,
                     std::span<const float> hidden, std::vector<ScoredToken>& scored);

  OpsFactory make_ops_;
  LogitsObserver observer_;
  // In this order: what is packed by ops_ goes before it.
  model::ModelSpec spec_;
  std::unique_ptr<kernels::Ops> ops_;
  wire::ActivationMode activations_ = wire::ActivationMode::kInt8;  ///< of ops_
  ShardWeights weights_;
  std::optional<Key> key_;  ///< empty: nothing is loaded
  kernels::KvType kv_type_ = kernels::KvType::kF16;
  std::int64_t max_step_tokens_ = 0;
  std::unique_ptr<kernels::KvCache> cache_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<Sampler> sampler_;  ///< last stage
};

}  // namespace brigade::worker
