// SPDX-License-Identifier: Apache-2.0
#include "router/actors/tokenizer_pool.h"

namespace brigade::router {

TokenizerPool::TokenizerPool(std::size_t num_threads, std::size_t max_jobs) : jobs_(max_jobs) {
  for (std::size_t i = 0; i < num_threads; ++i)
    threads_.emplace_back([this] { work(); });
}

TokenizerPool::~TokenizerPool() {
  close();
  for (std::thread& thread : threads_)
    thread.join();
}

bool TokenizerPool::run(std::function<void()> job) {
  return jobs_.try_push(std::move(job));
}

void TokenizerPool::close() {
  jobs_.close();
}

void TokenizerPool::work() {
  // close() wakes the wait; an hour is as good a deadline as any for an idle thread.
  constexpr auto kIdle = std::chrono::hours(1);
  while (true) {
    const auto job = jobs_.pop_until(Clock::now() + kIdle);
    if (job) {
      (*job)();
    } else if (jobs_.closed()) {
      return;
    }
  }
}

}  // namespace brigade::router
