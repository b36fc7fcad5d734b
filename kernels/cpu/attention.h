// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/partition.h"
#include "kernels/cpu/target.h"

namespace brigade::kernels {

/// One layer of a CpuKvCache.
struct AttentionPages {
  const std::byte* data = nullptr;
  std::int64_t page_bytes = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t group = 1;  ///< query heads a kv head
  KvType type = KvType::kF16;
};

/// First position that a row at `position` sees through a window; 0 is none.
[[nodiscard]] constexpr std::int64_t first_seen(std::int64_t position, std::int64_t window) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

/// Some heads of neighbouring queries of one sequence: all heads of kv heads in between, or parts
/// at the ends.
struct AttentionTask {
  const float* q = nullptr;  ///< row of the first query
  std::int64_t q_stride = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  std::int64_t num_queries = 0;
  std::int64_t first_position = 0;  ///< of the first query
  Range heads;
  const std::int32_t* blocks = nullptr;  ///< the sequence's block table
};

/// (query, head) rows that a task with more than one query should have for each kv head: their
/// state stays in L2.
inline constexpr std::int64_t kMaxAttentionRows = 192;

/// Floats of scratch that a task of so many rows needs (of one kv head, or of all heads with one
/// query).
[[nodiscard]] std::int64_t attention_scratch_size(std::int64_t rows, std::int64_t head_dim);

struct AttentionKernels {
  /// Causal attention with a running softmax in chunks of 64 tokens counted from position 0; chunks
  /// and pages before a row's window are not read for it. Each (query, head) row is a chain of its
  /// own over its own tokens: rows only share loads of keys and values, so neither their number nor
  /// the cut into tasks changes a bit.
  void (*attend)(const AttentionPages& pages, const AttentionParams& params,
                 const AttentionTask& task, float* scratch);
};

[[nodiscard]] AttentionKernels attention_kernels(CpuTarget target);

}  // namespace brigade::kernels
