// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/base/check.h"

namespace brigade::worker {
namespace {

/// Rows whose logits are computed at a time: 16 rows share each load of the head, and prompt
/// scoring never holds [chunk, vocab_size] at once.
constexpr std::int64_t kLogitRows = 16;

}  // namespace

AlignedFloats::AlignedFloats(std::int64_t size) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(float);
  const std::size_t rounded =
      std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  data_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, rounded)));
  INVARIANT(data_ != nullptr) << "no memory for " << rounded << " bytes of scratch";
}

void AlignedFloats::Free::operator()(float* p) const {
  std::free(p);
}

Decoder::Decoder(const model::ModelSpec& spec, const Shard& shard, std::int64_t tp_size,
                 const ShardWeights& weights, kernels::Ops& ops, std::int64_t max_step_tokens)
    : spec_(spec),
      shard_(shard),
      weights_(weights),
      ops_(ops),
      max_step_tokens_(max_step_tokens),
      q_size_(shard.heads.size() * spec.head_dim),
      kv_size_(shard.kv_heads.size() * spec.head_dim),
      vocab_(model::split_tensors(spec, tp_size).vocab),
      rope_(spec, max_step_tokens),
      normed_(max_step_tokens * spec.hidden_size),
      qkv_(max_step_tokens * (q_size_ + 2 * kv_size_)),
      mixed_(max_step_tokens * q_size_),
      partial_(max_step_tokens * spec.hidden_size),
      gate_up_(max_step_tokens * 2 * shard.ffn.size()),
      act_(max_step_tokens * shard.ffn.size()),
      rows_(shard.last_stage ? kLogitRows * spec.hidden_size : 0),
      part_(shard.last_stage ? kLogitRows * shard.vocab.size() : 0),
      parts_(shard.last_stage ? kLogitRows * spec.vocab_size : 0),
      whole_(shard.last_stage ? spec.vocab_size : 0) {
  INVARIANT_EQ(static_cast<std::int64_t>(weights.layers.size()), shard.layers.size());
}

std::uint64_t Decoder::scratch_bytes(const model::ModelSpec& spec, const Shard& shard,
                                     std::int64_t max_step_tokens) {
  const std::int64_t q = shard.heads.size() * spec.head_dim;
  const std::int64_t kv = shard.kv_heads.size() * spec.head_dim;
  const std::int64_t row =
      2 * spec.hidden_size + 2 * q + 2 * kv + 3 * shard.ffn.size() + spec.rotary_dim;
  const std::int64_t logits =
      kLogitRows * (spec.hidden_size + shard.vocab.size() + spec.vocab_size) + spec.vocab_size;
  const std::int64_t floats = max_step_tokens * row + (shard.last_stage ? logits : 0);
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
  }
  const kernels::RopeAngles angles = rope_.compute(inputs.positions);
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const LayerWeights& layer = weights_.layers[i];
    attention(layer, static_cast<std::int64_t>(i), inputs, angles, cache, x);
    RETURN_IF_ERROR(add_partial(group, deadline, x));
    ffn(layer, x);
    RETURN_IF_ERROR(add_partial(group, deadline, x));
  }
  return {};
}

void Decoder::attention(const LayerWeights& weights, std::int64_t layer, const StepInputs& inputs,
                        const kernels::RopeAngles& angles, kernels::KvCache& cache,
                        const kernels::Matrix& x) {
  const kernels::Matrix normed = view(normed_, x.rows, spec_.hidden_size);
  const kernels::Matrix qkv = view(qkv_, x.rows, q_size_ + 2 * kv_size_);
  const auto columns = [&qkv](std::int64_t begin, std::int64_t size) {
    return kernels::Matrix{qkv.data + begin, qkv.rows, size, qkv.stride};
  };
  ops_.rms_norm(x, weights.attn_norm, spec_.rms_norm_eps, normed);
  ops_.linear(*weights.qkv, normed, qkv);
  // Query and key heads lie side by side and turn by the same angles: one call.
  ops_.rope(columns(0, q_size_ + kv_size_), shard_.heads.size() + shard_.kv_heads.size(),
            spec_.head_dim, spec_.rope_style == model::RopeStyle::kAdjacent, angles);
  ops_.write_kv(cache, layer, columns(q_size_, kv_size_), columns(q_size_ + kv_size_, kv_size_),
                inputs.slot_mapping);
  const kernels::Matrix mixed = view(mixed_, x.rows, q_size_);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(spec_.head_dim)));
  ops_.attention(cache, layer, columns(0, q_size_),
                 {.cu_seqlens_q = inputs.cu_seqlens_q,
                  .context_lens = inputs.context_lens,
                  .cu_blocks = inputs.cu_blocks,
                  .block_tables = inputs.block_tables},
                 scale, mixed);
  ops_.linear(*weights.o, mixed, view(partial_, x.rows, spec_.hidden_size));
}

void Decoder::ffn(const LayerWeights& weights, const kernels::Matrix& x) {
  const kernels::Matrix normed = view(normed_, x.rows, spec_.hidden_size);
  const kernels::Matrix gate_up = view(gate_up_, x.rows, 2 * shard_.ffn.size());
  const kernels::Matrix act = view(act_, x.rows, shard_.ffn.size());
  ops_.rms_norm(x, weights.ffn_norm, spec_.rms_norm_eps, normed);
  ops_.linear(*weights.gate_up, normed, gate_up);
  ops_.silu_mul(gate_up, act);
  ops_.linear(*weights.down, act, view(partial_, x.rows, spec_.hidden_size));
}

Status Decoder::add_partial(Collective& group, TimePoint deadline, const kernels::Matrix& x) {
  const kernels::Matrix partial = view(partial_, x.rows, spec_.hidden_size);
  RETURN_IF_ERROR(group.all_reduce(
      std::span(partial.data, static_cast<std::size_t>(x.rows * spec_.hidden_size)), deadline));
  ops_.add(x, partial);
  return {};
}

Status Decoder::logits(const StepInputs& inputs, Collective& group, TimePoint deadline,
                       std::span<const float> hidden, const LogitsSink& sink) {
  INVARIANT(shard_.last_stage) << "logits of a stage without the head";
  const std::size_t num_rows = inputs.score_rows.size();
  const auto hidden_size = static_cast<std::size_t>(spec_.hidden_size);
  for (std::size_t begin = 0; begin < num_rows; begin += kLogitRows) {
    const std::size_t count = std::min<std::size_t>(kLogitRows, num_rows - begin);
    const auto rows = view(rows_, static_cast<std::int64_t>(count), spec_.hidden_size);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t row = inputs.score_rows[begin + i].row;
      INVARIANT(row >= 0 && row < inputs.num_tokens()) << row << " of " << inputs.num_tokens();
      const float* from = hidden.data() + static_cast<std::size_t>(row) * hidden_size;
      std::copy(from, from + hidden_size, rows.row(static_cast<std::int64_t>(i)));
    }
    ops_.rms_norm(rows, weights_.output_norm, spec_.rms_norm_eps, rows);
    const auto part = view(part_, rows.rows, shard_.vocab.size());
    ops_.linear(*weights_.head, rows, part);
    RETURN_IF_ERROR(collect(group, deadline, part, begin, sink));
  }
  return {};
}

Status Decoder::collect(Collective& group, TimePoint deadline, const kernels::Matrix& part,
                        std::size_t first_index, const LogitsSink& sink) {
  const auto width = static_cast<std::size_t>(part.cols);
  const auto rows = static_cast<std::size_t>(part.rows);
  if (group.size() == 1) {
    for (std::size_t i = 0; i < rows; ++i) {
      RETURN_IF_ERROR(sink(first_index + i, std::span(part.data + i * width, width)));
    }
    return {};
  }
  const auto vocab_size = static_cast<std::size_t>(spec_.vocab_size);
  const bool root = group.rank() == 0;
  RETURN_IF_ERROR(group.gather(std::span<const float>(part.data, rows * width),
                               std::span(parts_.data(), root ? rows * vocab_size : 0), deadline));
  if (!root) return {};
  for (std::size_t i = 0; i < rows; ++i) {
    for (const Range& share : vocab_) {
      const float* from = parts_.data() + static_cast<std::int64_t>(rows) * share.begin +
                          static_cast<std::int64_t>(i) * share.size();
      std::copy(from, from + share.size(), whole_.data() + share.begin);
    }
    RETURN_IF_ERROR(sink(first_index + i, std::span(whole_.data(), vocab_size)));
  }
  return {};
}

}  // namespace brigade::worker
