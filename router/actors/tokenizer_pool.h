// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/bounded_queue.h"

namespace brigade::router {

/// Threads for what takes milliseconds (tokenizing, rendering templates), off the dispatch path.
class TokenizerPool final {
 public:
  TokenizerPool(std::size_t num_threads, std::size_t max_jobs);
  /// Runs what is queued, then ends.
  ~TokenizerPool();

  /// False when `max_jobs` wait already, or after close().
  [[nodiscard]] bool run(std::function<void()> job);
  void close();

 private:
  void work();

  BoundedQueue<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
};

}  // namespace brigade::router
