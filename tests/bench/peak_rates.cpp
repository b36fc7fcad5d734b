// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/peak_rates.h"

#include <immintrin.h>
#include <time.h>

#include <cstdint>

namespace brigade::bench {
namespace {

using kernels::CpuTarget;

constexpr int kChains = 12;
constexpr int kRounds = 20000;

#define BRIGADE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vnni")))
#define BRIGADE_AVX2 __attribute__((target("avx2,fma")))

/// Keeps the compiler from merging or dropping the operations of a chain.
#define BRIGADE_KEEP(x) asm volatile("" : "+v"(x))

BRIGADE_AVX512 double int8_avx512() {
  __m512i sums[kChains];
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c)
    sums[c] = _mm512_setzero_si512();
  const __m512i ones = _mm512_set1_epi8(1);
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      sums[c] = _mm512_dpbusd_epi32(sums[c], ones, ones);
      BRIGADE_KEEP(sums[c]);
    }
  }
  return 2.0 * 64 * kChains * kRounds;
}

/// 8-bit products on AVX2: maddubs, madd, add.
BRIGADE_AVX2 double int8_avx2() {
  __m256i sums[kChains];
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c)
    sums[c] = _mm256_setzero_si256();
  __m256i bytes = _mm256_set1_epi8(1);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      asm volatile("" : "+x"(bytes));
      const __m256i words = _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, bytes), ones);
      sums[c] = _mm256_add_epi32(sums[c], words);
      asm volatile("" : "+x"(sums[c]));
    }
  }
  return 2.0 * 32 * kChains * kRounds;
}

BRIGADE_AVX512 double float_avx512() {
  __m512 sums[kChains];
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c)
    sums[c] = _mm512_set1_ps(1);
  const __m512 half = _mm512_set1_ps(0.5F);
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      sums[c] = _mm512_fmadd_ps(sums[c], half, half);
      BRIGADE_KEEP(sums[c]);
    }
  }
  return 2.0 * 16 * kChains * kRounds;
}

BRIGADE_AVX2 double float_avx2() {
  __m256 sums[kChains];
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c)
    sums[c] = _mm256_set1_ps(1);
  const __m256 half = _mm256_set1_ps(0.5F);
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      sums[c] = _mm256_fmadd_ps(sums[c], half, half);
      asm volatile("" : "+x"(sums[c]));
    }
  }
  return 2.0 * 8 * kChains * kRounds;
}

BRIGADE_AVX2 double read_avx2(const std::byte* data, std::size_t bytes) {
  __m256i sums[4] = {};
  for (std::size_t at = 0; at + 128 <= bytes; at += 128) {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < 4; ++c) {
      const auto* from = reinterpret_cast<const __m256i*>(data + at + 32 * c);
      sums[c] = _mm256_xor_si256(sums[c], _mm256_loadu_si256(from));
      asm volatile("" : "+x"(sums[c]));
    }
  }
  return static_cast<double>(bytes);
}

template <typename Work>
double rate(const Work& work) {
  const double start = thread_seconds();
  const double done = work();
  return done / (thread_seconds() - start) * 1e-9;
}

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double sample_read(const std::byte* data, std::size_t bytes) {
  return rate([&] { return read_avx2(data, bytes); });
}

double sample_int8_operations(CpuTarget target) {
  return rate(target == CpuTarget::kAvx3Dl ? int8_avx512 : int8_avx2);
}

double sample_float_operations(CpuTarget target) {
  return rate(target == CpuTarget::kAvx3Dl ? float_avx512 : float_avx2);
}

}  // namespace brigade::bench
