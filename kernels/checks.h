// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/op.h"

/// What every implementation of Ops demands of its arguments: shapes that do not fit are a fault of
/// ours and end the process at the entry of the op.
namespace brigade::kernels {

/// Tokens in a block of the KV cache.
inline constexpr std::int64_t kBlockSize = 16;

void check_embed(const Weight& table, std::span<const std::int32_t> tokens, const Matrix& out);
void check_rms_norm(const ConstMatrix& x, std::span<const float> weight, const Matrix& out);
void check_head_norm(const Matrix& x, std::span<const float> weight);
void check_linear(const Weight& w, const ConstMatrix& x, const Matrix& out);
void check_rope(const Matrix& x, std::int64_t num_heads, std::int64_t head_dim,
                const RopeAngles& angles);
void check_write_kv(const KvCache& cache, std::int64_t layer, const ConstMatrix& k,
                    const ConstMatrix& v, std::span<const std::int32_t> slot_mapping);
void check_copy_block(const KvCache& cache, std::int64_t from, std::int64_t to);
void check_attention(const KvCache& cache, std::int64_t layer, const ConstMatrix& q,
                     const AttentionBatch& batch, const AttentionParams& params, const Matrix& out);
void check_gate(const ConstMatrix& gate_up, const Matrix& out);
void check_add(const Matrix& x, const ConstMatrix& y);
void check_add_bias(const Matrix& x, std::span<const float> bias);
void check_soft_cap(const Matrix& x, float cap);
void check_log_sum(const ConstMatrix& logits, std::span<const LogitSum> out);
void check_score(const Weight& w, const ConstMatrix& x, float soft_cap,
                 std::span<const std::int32_t> targets, std::span<const LogitSum> out);
void check_route(const model::ExpertSpec& spec, const ConstMatrix& logits,
                 std::span<const std::int32_t> experts, std::span<const float> weights);
/// `rows` are of `table`, one for each row of `part`.
void check_rows(const ConstMatrix& table, std::span<const std::int32_t> rows,
                const ConstMatrix& part);

/// Refuses shapes without elements or with more bytes than can be addressed.
[[nodiscard]] Status check_kv_shape(const KvShape& shape, std::int64_t num_blocks);

}  // namespace brigade::kernels
