// SPDX-License-Identifier: Apache-2.0
#include "kernels/checks.h"

#include "common/base/check.h"

namespace brigade::kernels {
namespace {

void check_matrix(const ConstMatrix& m) {
  INVARIANT(m.rows >= 0 && m.cols > 0) << m.rows << " x " << m.cols;
  INVARIANT(m.rows == 0 || m.data != nullptr);
  INVARIANT_GE(m.stride, m.cols);
}

void check_same_shape(const ConstMatrix& a, const ConstMatrix& b) {
  check_matrix(a);
  check_matrix(b);
  INVARIANT_EQ(a.rows, b.rows);
  INVARIANT_EQ(a.cols, b.cols);
}

void check_layer(const KvCache& cache, std::int64_t layer) {
  INVARIANT(layer >= 0 && layer < cache.shape().num_layers)
      << "layer " << layer << " of " << cache.shape().num_layers;
}

/// Every row has its tokens in the cache, every block of a sequence is one of the cache's.
void check_sequences(const AttentionBatch& batch, std::int64_t num_blocks) {
  for (std::size_t i = 0; i < batch.context_lens.size(); ++i) {
    const std::int64_t rows = batch.cu_seqlens_q[i + 1] - batch.cu_seqlens_q[i];
    const std::int64_t context = batch.context_lens[i];
    const std::int64_t blocks = batch.cu_blocks[i + 1] - batch.cu_blocks[i];
    INVARIANT(rows >= 0 && rows <= context) << rows << " rows of context " << context;
    INVARIANT_GE(blocks * kBlockSize, context);
  }
  for (const std::int32_t block : batch.block_tables) {
    INVARIANT(block >= 0 && block < num_blocks) << "block " << block << " of " << num_blocks;
  }
}

}  // namespace

void check_embed(const Weight& table, std::span<const std::int32_t> tokens, const Matrix& out) {
  check_matrix(out);
  INVARIANT_EQ(out.rows, static_cast<std::int64_t>(tokens.size()));
  INVARIANT_EQ(out.cols, table.cols());
}

void check_rms_norm(const ConstMatrix& x, std::span<const float> weight, const Matrix& out) {
  check_same_shape(x, out);
  INVARIANT_EQ(x.cols, static_cast<std::int64_t>(weight.size()));
}

void check_head_norm(const Matrix& x, std::span<const float> weight) {
  check_matrix(x);
  INVARIANT(!weight.empty() && x.cols % static_cast<std::int64_t>(weight.size()) == 0)
      << x.cols << " columns in heads of " << weight.size();
}

void check_linear(const Weight& w, const ConstMatrix& x, const Matrix& out) {
  check_matrix(x);
  check_matrix(out);
  INVARIANT_EQ(x.rows, out.rows);
  INVARIANT_EQ(x.cols, w.cols());
  INVARIANT_EQ(out.cols, w.rows());
}

void check_rope(const Matrix& x, std::int64_t num_heads, std::int64_t head_dim,
                const RopeAngles& angles) {
  check_matrix(x);
  check_same_shape(angles.cos, angles.sin);
  INVARIANT_EQ(angles.cos.rows, x.rows);
  INVARIANT_EQ(num_heads * head_dim, x.cols);
  INVARIANT_LE(2 * angles.cos.cols, head_dim);
}

void check_write_kv(const KvCache& cache, std::int64_t layer, const ConstMatrix& k,
                    const ConstMatrix& v, std::span<const std::int32_t> slot_mapping) {
  check_layer(cache, layer);
  check_same_shape(k, v);
  INVARIANT_EQ(k.rows, static_cast<std::int64_t>(slot_mapping.size()));
  INVARIANT_EQ(k.cols, cache.shape().num_kv_heads * cache.shape().head_dim);
  for (const std::int32_t slot : slot_mapping) {
    INVARIANT(slot >= 0 && slot / kBlockSize < cache.num_blocks())
        << "slot " << slot << " of " << cache.num_blocks() << " blocks";
  }
}

void check_copy_block(const KvCache& cache, std::int64_t from, std::int64_t to) {
  for (const std::int64_t block : {from, to}) {
    INVARIANT(block >= 0 && block < cache.num_blocks())
        << "block " << block << " of " << cache.num_blocks();
  }
  INVARIANT_NE(from, to);
}

void check_attention(const KvCache& cache, std::int64_t layer, const ConstMatrix& q,
                     const AttentionBatch& batch, const AttentionParams& params,
                     const Matrix& out) {
  check_layer(cache, layer);
  check_same_shape(q, out);
  INVARIANT(params.window >= 0 && params.soft_cap >= 0) << params.window << ' ' << params.soft_cap;
  const KvShape& shape = cache.shape();
  INVARIANT_EQ(q.cols % (shape.num_kv_heads * shape.head_dim), 0);
  const std::size_t sequences = batch.context_lens.size();
  INVARIANT_EQ(batch.cu_seqlens_q.size(), sequences + 1);
  INVARIANT_EQ(batch.cu_blocks.size(), sequences + 1);
  INVARIANT(batch.cu_seqlens_q[0] == 0 && batch.cu_seqlens_q[sequences] == q.rows)
      << batch.cu_seqlens_q[sequences] << " vs " << q.rows;
  INVARIANT(batch.cu_blocks[0] == 0 &&
            batch.cu_blocks[sequences] == static_cast<std::int64_t>(batch.block_tables.size()))
      << batch.cu_blocks[sequences] << " vs " << batch.block_tables.size();
  check_sequences(batch, cache.num_blocks());
}

void check_gate(const ConstMatrix& gate_up, const Matrix& out) {
  check_matrix(gate_up);
  check_matrix(out);
  INVARIANT_EQ(gate_up.rows, out.rows);
  INVARIANT_EQ(gate_up.cols, 2 * out.cols);
}

void check_add(const Matrix& x, const ConstMatrix& y) {
  check_same_shape(x, y);
}

void check_add_bias(const Matrix& x, std::span<const float> bias) {
  check_matrix(x);
  INVARIANT_EQ(x.cols, static_cast<std::int64_t>(bias.size()));
}

void check_soft_cap(const Matrix& x, float cap) {
  check_matrix(x);
  INVARIANT(cap > 0) << cap;
}

void check_log_sum(const ConstMatrix& logits, std::span<const LogitSum> out) {
  check_matrix(logits);
  INVARIANT_EQ(logits.rows, static_cast<std::int64_t>(out.size()));
}

void check_score(const Weight& w, const ConstMatrix& x, float soft_cap,
                 std::span<const std::int32_t> targets, std::span<const LogitSum> out) {
  check_matrix(x);
  INVARIANT_EQ(x.cols, w.cols());
  INVARIANT(soft_cap >= 0) << soft_cap;
  INVARIANT_EQ(x.rows, static_cast<std::int64_t>(targets.size()));
  INVARIANT_EQ(targets.size(), out.size());
}

void check_route(const model::ExpertSpec& spec, const ConstMatrix& logits,
                 std::span<const std::int32_t> experts, std::span<const float> weights) {
  check_matrix(logits);
  INVARIANT_EQ(logits.cols, spec.num_experts);
  INVARIANT(spec.num_used >= 1 && spec.num_used <= spec.num_experts) << spec.num_used;
  INVARIANT_EQ(static_cast<std::int64_t>(experts.size()), logits.rows * spec.num_used);
  INVARIANT_EQ(experts.size(), weights.size());
}

void check_rows(const ConstMatrix& table, std::span<const std::int32_t> rows,
                const ConstMatrix& part) {
  check_matrix(table);
  check_matrix(part);
  INVARIANT_EQ(table.cols, part.cols);
  INVARIANT_EQ(part.rows, static_cast<std::int64_t>(rows.size()));
  for (const std::int32_t row : rows)
    INVARIANT(row >= 0 && row < table.rows) << "row " << row << " of " << table.rows;
}

Status check_kv_shape(const KvShape& shape, std::int64_t num_blocks) {
  // The largest product that stays far from overflow: 2^46 elements.
  std::int64_t elements = 2 * kBlockSize;
  for (const std::int64_t factor :
       {shape.num_layers, shape.num_kv_heads, shape.head_dim, num_blocks}) {
    if (factor <= 0) return invalid_argument("a KV cache needs positive dimensions");
    if (factor > (std::int64_t{1} << 46) / elements) {
      return resource_exhausted("a KV cache of this shape cannot be addressed");
    }
    elements *= factor;
  }
  return {};
}

}  // namespace brigade::kernels
