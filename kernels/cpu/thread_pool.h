// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace brigade::kernels {

/// Flushes denormals to zero (FTZ and DAZ) while it lives. Every thread that computes does so:
/// denormals cost time, and bits must not depend on which thread computed them.
class FlushDenormals final {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  std::uint32_t saved_;
};

/// Fork and join over a fixed number of threads, of which the caller is number 0. One thread costs
/// nothing. Idle threads sleep; with `spin` they first watch for about a millisecond, giving way to
/// others as they do, because a futex costs some 30 us and a decode step has hundreds of joins.
class ThreadPool final {
 public:
  struct Options {
    int num_threads = 1;
    bool pin = false;  ///< thread i on the (first_cpu + i)-th CPU this process may use
    int first_cpu = 0;
    bool spin = false;  ///< only with a core for each thread
  };

  explicit ThreadPool(const Options& options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int num_threads() const { return options_.num_threads; }

  /// body(i) for every thread i, on that thread; returns when all are done. One caller at a time;
  /// body must not throw.
  template <typename Body>
  void run(const Body& body) {
    if (options_.num_threads == 1 && !options_.pin) {
      body(0);
    } else {
      run_all([](const void* b, int i) { (*static_cast<const Body*>(b))(i); }, &body);
    }
  }

 private:
  using Function = void (*)(const void* body, int thread);

  void run_all(Function function, const void* body);
  void work(int thread);
  /// Returns once `word` is no longer `old`.
  void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t old) const;
  void wake(std::atomic<std::uint32_t>& word) const;
  void pin_caller(int thread) const;

  Options options_;
  std::vector<int> cpus_;  // those this process may use
  std::thread::id pinned_caller_;
  Function function_ = nullptr;
  const void* body_ = nullptr;
  bool stop_ = false;
  // On lines of their own: waiters read them while others write their neighbours.
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // counts forks; announces function_ and body_
  alignas(64) std::atomic<std::uint32_t> joined_{
      0};  // counts joins: equal to epoch_ when all are done
  alignas(64) std::atomic<std::uint32_t> running_{0};
  alignas(64) mutable std::atomic<std::uint32_t> sleepers_{0};
  std::vector<std::thread> threads_;
};

}  // namespace brigade::kernels
