// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/thread_pool.h"

#include <doctest/doctest.h>
#include <time.h>

#include <thread>

namespace brigade::kernels {

TEST_CASE("every thread runs the body once a call, and its writes are seen after it") {
  for (const bool spin : {false, true}) {
    for (const int threads : {1, 2, 3}) {
      for (const bool pin : {false, true}) {
        std::thread([&] {  // pinning must not outlive the test
          ThreadPool pool({.num_threads = threads, .pin = pin, .spin = spin});
          std::vector<int> calls(static_cast<std::size_t>(threads));
          for (int i = 0; i < 2000; ++i) {
            pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
          }
          for (const int n : calls)
            CHECK(n == 2000);
        })
            .join();
      }
    }
  }
}

TEST_CASE("a pool of one runs on its caller and a pool that is never used ends") {
  ThreadPool unused({.num_threads = 3});
  ThreadPool pool({.num_threads = 1});
  std::thread::id runner;
  pool.run([&](int /*thread*/) { runner = std::this_thread::get_id(); });
  CHECK(runner == std::this_thread::get_id());
}

TEST_CASE("an idle pool uses no CPU once it has stopped spinning") {
  ThreadPool pool({.num_threads = 2, .spin = true});
  pool.run([](int /*thread*/) {});
  const auto cpu_seconds = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(cpu_seconds() - before < 0.1);
}

TEST_CASE("denormals are flushed in every thread of a pool while it computes") {
  ThreadPool pool({.num_threads = 3});
  const FlushDenormals flush;
  float results[3] = {1, 1, 1};
  pool.run([&](int thread) {
    volatile float tiny = 1e-38F;
    results[thread] = tiny * 0.01F;
  });
  for (const float result : results)
    CHECK(result == 0.0F);
}

}  // namespace brigade::kernels
