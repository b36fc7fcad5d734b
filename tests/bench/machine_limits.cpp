// SPDX-License-Identifier: Apache-2.0
// What this CPU can do at most, as an inference engine meets it: streaming reads of a buffer far
// beyond the caches (decode lives on them) and int8 multiply-adds in registers (prefill does), by 1
// and by 2 threads. Prints one JSON object of medians: {"read_gb_s": [one, two], "int8_gop_s":
// [one, two]}, a multiply and an add counted as two operations.
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 30;
constexpr std::int64_t kDotIterations = 20'000'000;
constexpr int kRuns = 7;

std::atomic<std::uint64_t> sink{0};

/// Seconds from the common start of the pinned threads to the end of the last.
double timed(int num_threads, const std::function<void(int)>& work) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < num_threads; ++t) {
    threads.emplace_back([&, t] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(t, &set);
      pthread_setaffinity_np(pthread_self(), sizeof set, &set);
      ++ready;
      while (!go.load(std::memory_order_acquire))
        std::this_thread::yield();
      work(t);
    });
  }
  while (ready.load() != num_threads)
    std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  go.store(true, std::memory_order_release);
  for (std::thread& thread : threads)
    thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(const std::function<double()>& once) {
  once();
  std::vector<double> values;
  for (int i = 0; i < kRuns; ++i)
    values.push_back(once());
  std::sort(values.begin(), values.end());
  return values[kRuns / 2];
}

void read_all(const std::uint64_t* words, std::size_t num_words) {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  for (std::size_t i = 0; i + 64 <= num_words; i += 64) {
    for (std::size_t j = 0; j < 32; ++j)
      a ^= words[i + j];
    for (std::size_t j = 32; j < 64; ++j)
      b ^= words[i + j];
  }
  sink += a ^ b;
}

#if defined(__AVX512F__) && defined(__AVX512VNNI__)
using Lanes = __m512i;
Lanes multiply_add(Lanes sum, Lanes a, Lanes b) {
  return _mm512_dpbusd_epi32(sum, a, b);
}
Lanes all_bytes(char value) {
  return _mm512_set1_epi8(value);
}
#elif defined(__AVX2__)
using Lanes = __m256i;
Lanes multiply_add(Lanes sum, Lanes a, Lanes b) {
  const Lanes pairs = _mm256_maddubs_epi16(a, b);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
Lanes all_bytes(char value) {
  return _mm256_set1_epi8(value);
}
#else
#error "machine_limits knows AVX2 and AVX-512 VNNI"
#endif

void dot_products() {
  Lanes sums[8] = {};
  Lanes a = all_bytes(3);
  const Lanes b = all_bytes(-5);
  for (std::int64_t i = 0; i < kDotIterations; ++i) {
    asm volatile("" : "+x"(a));  // else the compiler would compute the products once
    for (Lanes& sum : sums)
      sum = multiply_add(sum, a, b);
  }
  std::uint32_t first = 0;
  for (const Lanes& sum : sums) {
    std::uint32_t word = 0;
    std::memcpy(&word, &sum, sizeof word);
    first += word;
  }
  sink += first;
}

}  // namespace

int main() {
  void* memory =
      mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    return 1;
  }
  madvise(memory, kBufferBytes, MADV_HUGEPAGE);
  std::memset(memory, 1, kBufferBytes);
  const auto* words = static_cast<const std::uint64_t*>(memory);
  double read[2] = {};
  double dot[2] = {};
  for (int n : {1, 2}) {
    const std::size_t share = kBufferBytes / sizeof(std::uint64_t) / static_cast<std::size_t>(n);
    read[n - 1] = median([&] {
      const double s =
          timed(n, [&](int t) { read_all(words + static_cast<std::size_t>(t) * share, share); });
      return static_cast<double>(kBufferBytes) / s / 1e9;
    });
    dot[n - 1] = median([&] {
      const double s = timed(n, [](int) { dot_products(); });
      return 2.0 * sizeof(Lanes) * 8 * static_cast<double>(kDotIterations) * n / s / 1e9;
    });
  }
  std::printf("{\"read_gb_s\": [%.2f, %.2f], \"int8_gop_s\": [%.1f, %.1f]}\n", read[0], read[1],
              dot[0], dot[1]);
  return sink == 42 ? 1 : 0;
}
