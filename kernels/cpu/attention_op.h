// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/kv_cache.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/op.h"

namespace brigade::kernels {

/// Ops::attention over a thread pool: cuts the batch into tasks of neighbouring queries and gives
/// each thread an equal share of the scores, in whole heads.
class AttentionOp final {
 public:
  AttentionOp(const AttentionKernels& kernels, ThreadPool& pool)
      : kernels_(kernels), pool_(pool), scratch_(static_cast<std::size_t>(pool.num_threads())) {}

  void run(const CpuKvCache& cache, std::int64_t layer, const ConstMatrix& q,
           const AttentionBatch& batch, const AttentionParams& params, const Matrix& out);

 private:
  /// A task with all heads, and what one of them costs (in scores).
  struct CostedTask {
    AttentionTask task;
    std::int64_t cost;
  };

  void cut(const ConstMatrix& q, const AttentionBatch& batch, std::int64_t num_heads,
           std::int64_t group, std::int64_t window, const Matrix& out);
  void run_share(const AttentionPages& pages, const AttentionParams& params, std::int64_t total,
                 int thread, int num_threads);

  AttentionKernels kernels_;
  ThreadPool& pool_;
  std::vector<CostedTask> tasks_;
  std::vector<ScratchBuffer> scratch_;  // [threads]
};

}  // namespace brigade::kernels
