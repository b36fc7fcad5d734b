// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_op.h"

#include <algorithm>

namespace brigade::kernels {
namespace {

/// Scores times dimensions below which a fork does not pay.
constexpr std::int64_t kMinForkProducts = 32 * 1024;

/// Scores of `queries` rows from `position` on.
std::int64_t num_scores(std::int64_t position, std::int64_t queries, std::int64_t window) {
  // Row i sees position + i + 1 tokens until the window is full.
  const std::int64_t rising =
      window == 0 ? queries : std::clamp<std::int64_t>(window - position, 0, queries);
  return rising * (2 * position + rising + 1) / 2 + (queries - rising) * window;
}

}  // namespace

void AttentionOp::run(const CpuKvCache& cache, std::int64_t layer, const ConstMatrix& q,
                      const AttentionBatch& batch, const AttentionParams& params,
                      const Matrix& out) {
  const KvShape& shape = cache.shape();
  const std::int64_t num_heads = q.cols / shape.head_dim;
  const AttentionPages pages{.data = cache.layer(layer),
                             .page_bytes = cache.page_bytes(),
                             .num_kv_heads = shape.num_kv_heads,
                             .head_dim = shape.head_dim,
                             .group = num_heads / shape.num_kv_heads,
                             .type = shape.type};
  cut(q, batch, num_heads, pages.group, params.window, out);
  std::int64_t total = 0;
  for (const CostedTask& costed : tasks_)
    total += costed.cost * num_heads;
  const int threads = pool_.num_threads();
  if (threads == 1 || total * shape.head_dim < kMinForkProducts) {
    return run_share(pages, params, total, /*thread=*/0, /*num_threads=*/1);
  }
  pool_.run([&](int thread) { run_share(pages, params, total, thread, threads); });
}

void AttentionOp::cut(const ConstMatrix& q, const AttentionBatch& batch, std::int64_t num_heads,
                      std::int64_t group, std::int64_t window, const Matrix& out) {
  tasks_.clear();
  const std::int64_t max_queries = std::max<std::int64_t>(1, kMaxAttentionRows / group);
  for (std::size_t s = 0; s < batch.context_lens.size(); ++s) {
    const std::int64_t end = batch.cu_seqlens_q[s + 1];
    for (std::int64_t row = batch.cu_seqlens_q[s]; row < end; row += max_queries) {
      const std::int64_t queries = std::min(max_queries, end - row);
      const std::int64_t position = batch.context_lens[s] - (end - row);
      tasks_.push_back({.task = {.q = q.row(row),
                                 .q_stride = q.stride,
                                 .out = out.row(row),
                                 .out_stride = out.stride,
                                 .num_queries = queries,
                                 .first_position = position,
                                 .heads = {0, num_heads},
                                 .blocks = batch.block_tables.data() + batch.cu_blocks[s]},
                        .cost = num_scores(position, queries, window)});
    }
  }
}

void AttentionOp::run_share(const AttentionPages& pages, const AttentionParams& params,
                            std::int64_t total, int thread, int num_threads) {
  const std::int64_t begin = total * thread / num_threads;
  const std::int64_t end = total * (thread + 1) / num_threads;
  std::int64_t before = 0;
  for (const CostedTask& costed : tasks_) {
    AttentionTask task = costed.task;
    const std::int64_t num_heads = task.heads.size();
    const auto head = [&](std::int64_t cost) {
      return std::clamp<std::int64_t>((cost - before + costed.cost / 2) / costed.cost, 0,
                                      num_heads);
    };
    task.heads = {head(begin), head(end)};
    before += costed.cost * num_heads;
    if (task.heads.size() <= 0) continue;
    const std::int64_t rows =
        task.num_queries > 1 ? task.num_queries * pages.group : task.heads.size();
    ScratchBuffer& scratch = scratch_[static_cast<std::size_t>(thread)];
    kernels_.attend(pages, params, task,
                    scratch.floats(attention_scratch_size(rows, pages.head_dim)));
  }
}

}  // namespace brigade::kernels
