// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "common/base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace brigade::kernels {
namespace {

/// About a millisecond: 20,000 pauses, one yield to other threads in 64. A partner that needs this
/// CPU gets it.
constexpr int kSpins = 20000;
constexpr int kSpinsPerYield = 64;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

#if defined(__x86_64__)
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
  constexpr std::uint32_t kFlushToZero = 0x8000;
  constexpr std::uint32_t kDenormalsAreZero = 0x0040;
  _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero);
}
FlushDenormals::~FlushDenormals() {
  _mm_setcsr(saved_);
}
#else
FlushDenormals::FlushDenormals() : saved_(0) {}
FlushDenormals::~FlushDenormals() = default;
#endif

ThreadPool::ThreadPool(const Options& options) : options_(options), cpus_(allowed_cpus()) {
  INVARIANT(options.num_threads >= 1 && options.num_threads <= 1024) << options.num_threads;
  INVARIANT_GE(options.first_cpu, 0);
  for (int i = 1; i < options.num_threads; ++i)
    threads_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  epoch_.fetch_add(1);
  wake(epoch_);
  for (std::thread& thread : threads_)
    thread.join();
}

void ThreadPool::run_all(Function function, const void* body) {
  if (options_.pin && pinned_caller_ != std::this_thread::get_id()) {
    pin_caller(/*thread=*/0);
    pinned_caller_ = std::this_thread::get_id();
  }
  if (options_.num_threads == 1) return function(body, 0);
  function_ = function;
  body_ = body;
  running_.store(static_cast<std::uint32_t>(options_.num_threads - 1), std::memory_order_relaxed);
  const std::uint32_t joined = joined_.load(std::memory_order_relaxed);
  epoch_.fetch_add(1);
  wake(epoch_);
  function(body, 0);
  wait_while(joined_, joined);
}

void ThreadPool::work(int thread) {
  if (options_.pin) pin_caller(thread);
  const FlushDenormals flush;
  // Counted from 0 and not read from epoch_: a fork may come before this thread first runs.
  for (std::uint32_t seen = 0;; ++seen) {
    wait_while(epoch_, seen);
    if (stop_) return;
    function_(body_, thread);
    if (running_.fetch_sub(1) == 1) {
      joined_.fetch_add(1);
      wake(joined_);
    }
  }
}

void ThreadPool::wait_while(std::atomic<std::uint32_t>& word, std::uint32_t old) const {
  if (options_.spin) {
    for (int i = 0; i < kSpins; ++i) {
      if (word.load(std::memory_order_acquire) != old) return;
      if (i % kSpinsPerYield == kSpinsPerYield - 1) {
        sched_yield();
      } else {
        pause();
      }
    }
  }
  while (word.load(std::memory_order_acquire) == old) {
    // Announced before the kernel compares the word, so that whoever changes it either is seen
    // there or sees a sleeper.
    sleepers_.fetch_add(1);
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, old, nullptr,
            nullptr, 0);
    sleepers_.fetch_sub(1);
  }
}

void ThreadPool::wake(std::atomic<std::uint32_t>& word) const {
  if (sleepers_.load() == 0) return;
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

void ThreadPool::pin_caller(int thread) const {
  if (cpus_.empty()) return;
  const std::size_t at = static_cast<std::size_t>(options_.first_cpu + thread) % cpus_.size();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpus_[at], &set);
  // Best effort: a thread that may not be pinned still computes.
  (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

}  // namespace brigade::kernels
