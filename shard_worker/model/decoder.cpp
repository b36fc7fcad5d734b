// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/decoder.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"

namespace brigade::worker {

Decoder::Decoder(const model::ModelSpec& spec, const Shard& shard, const ShardWeights& weights,
                 kernels::Ops& ops, std::int64_t max_step_tokens)
    : spec_(spec),
      shard_(shard),
      weights_(weights),
      ops_(ops),
      max_step_tokens_(max_step_tokens),
      q_size_(shard.heads.size() * spec.head_dim),
      kv_size_(shard.kv_heads.size() * spec.head_dim),
      normed_(max_step_tokens * spec.hidden_size),
      qkv_(max_step_tokens * (q_size_ + 2 * kv_size_)),
      mixed_(max_step_tokens * q_size_),
      partial_(max_step_tokens * spec.hidden_size),
      gate_up_(std::min(kFfnRows, max_step_tokens) * 2 * shard.ffn.size()),
      act_(std::min(kFfnRows, max_step_tokens) * shard.ffn.size()),
      rows_(shard.last_stage ? kSumRows * spec.hidden_size : 0),
      part_(shard.last_stage ? kLogitRows * shard.vocab.size() : 0) {
  INVARIANT_EQ(static_cast<std::int64_t>(weights.layers.size()), shard.layers.size());
  for (const model::RopeSpec& rope : spec.ropes)
    ropes_.emplace_back(rope, spec.rotary_dim, max_step_tokens);
  angles_.resize(ropes_.size());
  if (spec.experts.num_experts > 0) experts_.emplace(spec, shard, ops, max_step_tokens);
}

std::uint64_t Decoder::scratch_bytes(const model::ModelSpec& spec, const Shard& shard,
                                     std::int64_t max_step_tokens) {
  const std::int64_t q = shard.heads.size() * spec.head_dim;
  const std::int64_t kv = shard.kv_heads.size() * spec.head_dim;
  const std::int64_t angles = spec.rotary_dim * static_cast<std::int64_t>(spec.ropes.size());
  const std::int64_t row =
      2 * spec.hidden_size + 2 * q + 2 * kv + angles + ExpertFfn::scratch_row(spec, shard);
  const std::int64_t ffn = std::min(kFfnRows, max_step_tokens) * 3 * shard.ffn.size();
  const std::int64_t logits = kSumRows * spec.hidden_size + kLogitRows * shard.vocab.size();
  const std::int64_t floats = max_step_tokens * row + ffn + (shard.last_stage ? logits : 0);
  return static_cast<std::uint64_t>(floats) * sizeof(float);
}

Status Decoder::forward(const StepInputs& inputs, kernels::KvCache& cache, Collective& group,
                        TimePoint deadline, std::span<float> hidden) {
  const std::int64_t num_tokens = inputs.num_tokens();
  INVARIANT_LE(num_tokens, max_step_tokens_);
  INVARIANT_EQ(static_cast<std::int64_t>(hidden.size()), num_tokens * spec_.hidden_size);
  const kernels::Matrix x{hidden.data(), num_tokens, spec_.hidden_size, spec_.hidden_size};
  if (shard_.first_stage) {
    ops_.embed(*weights_.embedding, shard_.vocab.begin, inputs.tokens, x);
    RETURN_IF_ERROR(group.all_reduce(hidden, deadline));
    if (spec_.embedding_scale != 1) ops_.scale(x, spec_.embedding_scale);
  }
  for (std::size_t i = 0; i < ropes_.size(); ++i)
    angles_[i] = ropes_[i].compute(inputs.positions);
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const LayerWeights& layer = weights_.layers[i];
    attention(i, inputs, cache, x);
    RETURN_IF_ERROR(add_partial(group, deadline, layer.post_attn_norm, x));
    ffn(layer, x);
    RETURN_IF_ERROR(add_partial(group, deadline, layer.post_ffn_norm, x));
  }
  return {};
}

void Decoder::attention(std::size_t i, const StepInputs& inputs, kernels::KvCache& cache,
                        const kernels::Matrix& x) {
  const LayerWeights& weights = weights_.layers[i];
  const auto layer = static_cast<std::int64_t>(i);
  const model::LayerSpec spec = spec_.layer(shard_.layers.begin + layer);
  const kernels::Matrix normed = normed_.view(x.rows, spec_.hidden_size);
  const kernels::Matrix qkv = qkv_.view(x.rows, q_size_ + 2 * kv_size_);
  const auto columns = [&qkv](std::int64_t begin, std::int64_t size) {
    return kernels::Matrix{qkv.data + begin, qkv.rows, size, qkv.stride};
  };
  ops_.rms_norm(x, weights.attn_norm, spec_.rms_norm_eps, normed);
  ops_.linear(*weights.qkv, normed, qkv);
  if (!weights.qkv_bias.empty()) ops_.add_bias(qkv, weights.qkv_bias);
  if (!weights.q_norm.empty()) {
    ops_.head_norm(columns(0, q_size_), weights.q_norm, spec_.rms_norm_eps);
    ops_.head_norm(columns(q_size_, kv_size_), weights.k_norm, spec_.rms_norm_eps);
  }
  // Query and key heads lie side by side and turn by the same angles: one call.
  ops_.rope(columns(0, q_size_ + kv_size_), shard_.heads.size() + shard_.kv_heads.size(),
            spec_.head_dim, spec_.rope_style == model::RopeStyle::kAdjacent, angles_[spec.rope]);
  ops_.write_kv(cache, layer, columns(q_size_, kv_size_), columns(q_size_ + kv_size_, kv_size_),
                inputs.slot_mapping);
  const kernels::Matrix mixed = mixed_.view(x.rows, q_size_);
  ops_.attention(
      cache, layer, columns(0, q_size_),
      {.cu_seqlens_q = inputs.cu_seqlens_q,
       .context_lens = inputs.context_lens,
       .cu_blocks = inputs.cu_blocks,
       .block_tables = inputs.block_tables},
      {.scale = spec_.attention_scale, .soft_cap = spec_.attention_soft_cap, .window = spec.window},
      mixed);
  const kernels::Matrix partial = partial_.view(x.rows, spec_.hidden_size);
  ops_.linear(*weights.o, mixed, partial);
  if (!weights.o_bias.empty()) ops_.add_bias(partial, weights.o_bias);
}

void Decoder::ffn(const LayerWeights& weights, const kernels::Matrix& x) {
  const kernels::Matrix normed = normed_.view(x.rows, spec_.hidden_size);
  const kernels::Matrix partial = partial_.view(x.rows, spec_.hidden_size);
  ops_.rms_norm(x, weights.ffn_norm, spec_.rms_norm_eps, normed);
  if (weights.router != nullptr) return experts_->run(weights, normed, partial);
  for (std::int64_t begin = 0; begin < x.rows; begin += kFfnRows) {
    const std::int64_t rows = std::min(kFfnRows, x.rows - begin);
    ffn_rows(weights, {normed.row(begin), rows, normed.cols, normed.stride},
             {partial.row(begin), rows, partial.cols, partial.stride});
  }
}

void Decoder::ffn_rows(const LayerWeights& weights, const kernels::Matrix& normed,
                       const kernels::Matrix& partial) {
  const kernels::Matrix gate_up = gate_up_.view(normed.rows, 2 * shard_.ffn.size());
  const kernels::Matrix act = act_.view(normed.rows, shard_.ffn.size());
  ops_.linear(*weights.ffn.gate_up, normed, gate_up);
  if (!weights.gate_up_bias.empty()) ops_.add_bias(gate_up, weights.gate_up_bias);
  ops_.gate(spec_.activation, gate_up, act);
  ops_.linear(*weights.ffn.down, act, partial);
  if (!weights.down_bias.empty()) ops_.add_bias(partial, weights.down_bias);
}

Status Decoder::add_partial(Collective& group, TimePoint deadline, std::span<const float> post_norm,
                            const kernels::Matrix& x) {
  const kernels::Matrix partial = partial_.view(x.rows, spec_.hidden_size);
  RETURN_IF_ERROR(group.all_reduce(
      std::span(partial.data, static_cast<std::size_t>(x.rows * spec_.hidden_size)), deadline));
  if (!post_norm.empty()) ops_.rms_norm(partial, post_norm, spec_.rms_norm_eps, partial);
  ops_.add(x, partial);
  return {};
}

kernels::Matrix Decoder::last_normed(std::span<const ScoreRow> rows,
                                     std::span<const float> hidden) {
  const auto hidden_size = static_cast<std::size_t>(spec_.hidden_size);
  const auto normed = rows_.view(static_cast<std::int64_t>(rows.size()), spec_.hidden_size);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i].row);
    INVARIANT((row + 1) * hidden_size <= hidden.size()) << row << " of " << hidden.size();
    const auto from = hidden.subspan(row * hidden_size, hidden_size);
    std::copy(from.begin(), from.end(), normed.row(static_cast<std::int64_t>(i)));
  }
  ops_.rms_norm(normed, weights_.output_norm, spec_.rms_norm_eps, normed);
  return normed;
}

Status Decoder::logits(std::span<const ScoreRow> rows, std::span<const float> hidden,
                       const LogitsSink& sink) {
  INVARIANT(shard_.last_stage) << "logits of a stage without the head";
  for (std::size_t begin = 0; begin < rows.size(); begin += kLogitRows) {
    const std::size_t count = std::min<std::size_t>(kLogitRows, rows.size() - begin);
    const kernels::Matrix normed = last_normed(rows.subspan(begin, count), hidden);
    const auto part = part_.view(normed.rows, shard_.vocab.size());
    ops_.linear(*weights_.head, normed, part);
    if (spec_.final_soft_cap > 0) ops_.soft_cap(part, spec_.final_soft_cap);
    RETURN_IF_ERROR(sink(begin, part));
  }
  return {};
}

Status Decoder::score(std::span<const ScoreRow> rows, std::span<const float> hidden,
                      const SumsSink& sink) {
  INVARIANT(shard_.last_stage) << "scores of a stage without the head";
  std::array<std::int32_t, kSumRows> targets{};
  std::array<kernels::LogitSum, kSumRows> sums;
  for (std::size_t begin = 0; begin < rows.size(); begin += kSumRows) {
    const std::size_t count = std::min<std::size_t>(kSumRows, rows.size() - begin);
    const kernels::Matrix normed = last_normed(rows.subspan(begin, count), hidden);
    for (std::size_t i = 0; i < count; ++i) {
      targets[i] = rows[begin + i].target - static_cast<std::int32_t>(shard_.vocab.begin);
    }
    ops_.score(*weights_.head, normed, spec_.final_soft_cap, std::span(targets).first(count),
               std::span(sums).first(count));
    RETURN_IF_ERROR(sink(begin, std::span(sums).first(count)));
  }
  return {};
}

}  // namespace brigade::worker
