// SPDX-License-Identifier: Apache-2.0
// Compiled once for each target (Highway's include convention): no plain include guard.
#if defined(BRIGADE_KERNELS_CPU_LINEAR_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_LINEAR_INT8_INL_H_
#undef BRIGADE_KERNELS_CPU_LINEAR_INT8_INL_H_
#else
#define BRIGADE_KERNELS_CPU_LINEAR_INT8_INL_H_
#endif

#include <cstring>

#include "kernels/cpu/linear.h"
#include "kernels/cpu/vec-inl.h"

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3_DL
#include <immintrin.h>
#endif

/// The tiles that hold the group dot, which Highway 1.0 has no operations for: raw intrinsics for
/// AVX2 (maddubs) and AVX-512 VNNI (dpbusd), plain C++ elsewhere. tile<form, R>(...) computes 16
/// rows of weights times R rows of activations into acc: [R][16].
HWY_BEFORE_NAMESPACE();
#if HWY_TARGET == HWY_AVX3_DL
// Highway 1.0.3 asks for avxvnni here, though what it checks on the CPU is avx512vnni.
#pragma GCC push_options
#pragma GCC target("avx512vnni")
#endif
namespace brigade::kernels::HWY_NAMESPACE {

template <WeightForm form>
inline constexpr bool kHasMin = form == WeightForm::kQ4Min;
template <WeightForm form>
inline constexpr bool kEightBits = form == WeightForm::kQ8;
template <WeightForm form>
inline constexpr std::int64_t kHeaderBytes = kHasMin<form> ? 64 : 32;
template <WeightForm form>
inline constexpr std::int64_t kBlockBytes = kHeaderBytes<form> + (kEightBits<form> ? 512 : 256);

/// Where a tile's activations are.
struct TileInput {
  const std::int8_t* q;
  const std::int8_t* q_low;
  const float* scale;
  const float* scaled_sum;
  const std::int32_t* offset;
  const std::uint8_t* ahead;  ///< weights that will be read a panel or so later, or null
};

/// The hardware asks for the next block too late once several rows of activations make each last;
/// batches of 2 to 16 rows gain 25 to 40 % from DRAM.
template <WeightForm form>
HWY_INLINE void prefetch_block(const std::uint8_t*& ahead) {
  if (ahead == nullptr) return;
#pragma GCC unroll 9
  for (std::int64_t at = 0; at < kBlockBytes<form>; at += 64)
    __builtin_prefetch(ahead + at);
  ahead += kBlockBytes<form>;
}

HWY_INLINE std::int32_t load_word(const std::int8_t* from) {
  std::int32_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

#if HWY_TARGET == HWY_AVX3_DL

inline constexpr int kInt8TileRows[3] = {12, 12, 12};
inline constexpr bool kInt8Split[3] = {false, false, false};

HWY_INLINE __m512i dot_line(__m512i sum, __m512i weights, const std::int8_t* q) {
  sum = _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(load_word(q)));
  asm volatile("" : "+v"(sum));
  return sum;
}

template <WeightForm form, int R>
void int8_tile(const std::uint8_t* block, std::int64_t groups, TileInput x, float* out) {
  const __m512i low = _mm512_set1_epi8(15);
  __m512 acc[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
    acc[r] = _mm512_setzero_ps();
  for (std::int64_t g = 0; g < groups; ++g) {
    prefetch_block<form>(x.ahead);
    __m512i sum[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      sum[r] = kHasMin<form> ? _mm512_setzero_si512() : _mm512_set1_epi32(x.offset[r]);
    }
    const std::uint8_t* lines = block + kHeaderBytes<form>;
    if constexpr (kEightBits<form>) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        const __m512i line = _mm512_loadu_si512(lines + 64 * j);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
          sum[r] = dot_line(sum[r], line, x.q + (j * R + r) * 4);
      }
    } else {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const __m512i line = _mm512_loadu_si512(lines + 64 * j);
        const __m512i first = _mm512_and_si512(line, low);
        const __m512i second = _mm512_and_si512(_mm512_srli_epi16(line, 4), low);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
          sum[r] = dot_line(sum[r], first, x.q + (j * R + r) * 4);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
          sum[r] = dot_line(sum[r], second, x.q + ((4 + j) * R + r) * 4);
      }
    }
    const auto* header = reinterpret_cast<const __m256i*>(block);
    const __m512 scale = _mm512_cvtph_ps(_mm256_loadu_si256(header));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(x.scale[r]));
      acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), both, acc[r]);
    }
    if constexpr (kHasMin<form>) {
      const __m512 minimum = _mm512_cvtph_ps(_mm256_loadu_si256(header + 1));
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        acc[r] = _mm512_fmadd_ps(minimum, _mm512_set1_ps(x.scaled_sum[r]), acc[r]);
      }
    }
    block += kBlockBytes<form>;
    x.q += 32 * R;
    x.scale += R;
    x.scaled_sum += R;
    x.offset += R;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
    _mm512_storeu_ps(out + 16 * r, acc[r]);
}

#elif HWY_TARGET == HWY_AVX2

inline constexpr int kInt8TileRows[3] = {4, 4, 2};
inline constexpr bool kInt8Split[3] = {false, false, true};

/// 16 weights' worth of pair sums added to `sum`. A pair is at most 2 * 15 * 127 with 4-bit weights
/// and 2 * 255 * 8 with a part of q and 8-bit ones: the 8 of a group fit 16 bits.
HWY_INLINE __m256i add_pairs(bool first, __m256i sum, __m256i weights, __m256i q) {
  const __m256i pairs = _mm256_maddubs_epi16(weights, q);
  sum = first ? pairs : _mm256_add_epi16(sum, pairs);
  asm volatile("" : "+x"(sum));
  return sum;
}

HWY_INLINE __m256i load_line(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

/// The pair sums of one group: parts[r][half], for 8-bit weights then those of q_low.
template <WeightForm form, int R>
struct GroupSums {
  __m256i high[R][2];
  __m256i low[kEightBits<form> ? R : 1][2];

  HWY_INLINE void add_lines(const std::uint8_t* lines, const TileInput& x) {
    if constexpr (kEightBits<form>) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        const __m256i line[2] = {load_line(lines + 64 * j), load_line(lines + 64 * j + 32)};
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const __m256i h = _mm256_set1_epi32(load_word(x.q + (j * R + r) * 4));
          high[r][0] = add_pairs(j == 0, high[r][0], line[0], h);
          high[r][1] = add_pairs(j == 0, high[r][1], line[1], h);
          const __m256i l = _mm256_set1_epi32(load_word(x.q_low + (j * R + r) * 4));
          low[r][0] = add_pairs(j == 0, low[r][0], line[0], l);
          low[r][1] = add_pairs(j == 0, low[r][1], line[1], l);
        }
      }
    } else {
      const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const __m256i line[2] = {load_line(lines + 64 * j), load_line(lines + 64 * j + 32)};
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          const __m256i weights[2] = {
              _mm256_and_si256(half == 0 ? line[0] : _mm256_srli_epi16(line[0], 4), mask),
              _mm256_and_si256(half == 0 ? line[1] : _mm256_srli_epi16(line[1], 4), mask)};
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r) {
            const __m256i q = _mm256_set1_epi32(load_word(x.q + ((half * 4 + j) * R + r) * 4));
            high[r][0] = add_pairs(j + half == 0, high[r][0], weights[0], q);
            high[r][1] = add_pairs(j + half == 0, high[r][1], weights[1], q);
          }
        }
      }
    }
  }

  /// The exact dots of 8 rows of weights with row r.
  HWY_INLINE __m256i dot(int r, int half, std::int32_t offset) const {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_madd_epi16(high[r][half], ones);
    if constexpr (kEightBits<form>) {
      sum = _mm256_add_epi32(_mm256_slli_epi32(sum, 4), _mm256_madd_epi16(low[r][half], ones));
    }
    return kHasMin<form> ? sum : _mm256_add_epi32(sum, _mm256_set1_epi32(offset));
  }
};

HWY_INLINE __m256 load_halves(const std::uint8_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

template <WeightForm form, int R>
void int8_tile(const std::uint8_t* block, std::int64_t groups, TileInput x, float* out) {
  // From 3 rows on all registers are needed for the pair sums: acc then lives in L1.
  constexpr bool kInRegisters = R <= 2;
  __m256 acc[kInRegisters ? R : 1][2];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    if constexpr (kInRegisters) {
      acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    } else {
      _mm256_storeu_ps(out + 16 * r, _mm256_setzero_ps());
      _mm256_storeu_ps(out + 16 * r + 8, _mm256_setzero_ps());
    }
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    prefetch_block<form>(x.ahead);
    GroupSums<form, R> sums;
    sums.add_lines(block + kHeaderBytes<form>, x);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256 scale = load_halves(block + 16 * half);
      __m256 minimum = _mm256_setzero_ps();
      if constexpr (kHasMin<form>) minimum = load_halves(block + 32 + 16 * half);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        float* memory = out + 16 * r + 8 * half;
        __m256 sum;
        if constexpr (kInRegisters) {
          sum = acc[r][half];
        } else {
          sum = _mm256_loadu_ps(memory);
        }
        const __m256 both = _mm256_mul_ps(scale, _mm256_set1_ps(x.scale[r]));
        sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums.dot(r, half, x.offset[r])), both, sum);
        if constexpr (kHasMin<form>) {
          sum = _mm256_fmadd_ps(minimum, _mm256_set1_ps(x.scaled_sum[r]), sum);
        }
        if constexpr (kInRegisters) {
          acc[r][half] = sum;
        } else {
          _mm256_storeu_ps(memory, sum);
        }
      }
    }
    block += kBlockBytes<form>;
    x.q += 32 * R;
    if constexpr (kEightBits<form>) x.q_low += 32 * R;
    x.scale += R;
    x.scaled_sum += R;
    x.offset += R;
  }
  if constexpr (kInRegisters) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      _mm256_storeu_ps(out + 16 * r, acc[r][0]);
      _mm256_storeu_ps(out + 16 * r + 8, acc[r][1]);
    }
  }
}

#else

inline constexpr int kInt8TileRows[3] = {1, 1, 1};
inline constexpr bool kInt8Split[3] = {false, false, false};

template <WeightForm form, int R>
void int8_tile(const std::uint8_t* block, std::int64_t groups, TileInput x, float* out) {
  static_assert(R == 1, "rows share no loads here");
  for (int i = 0; i < 16; ++i)
    out[i] = 0;
  for (std::int64_t g = 0; g < groups; ++g, block += kBlockBytes<form>) {
    for (int i = 0; i < 16; ++i) {
      const std::uint8_t* lines = block + kHeaderBytes<form> + 4 * i;
      std::int32_t dot = kHasMin<form> ? 0 : x.offset[g];
      for (int j = 0; j < (kEightBits<form> ? 8 : 4); ++j) {
        for (int b = 0; b < 4; ++b) {
          const int byte = lines[64 * j + b];
          const std::int8_t* q = x.q + 32 * g + 4 * j + b;
          if constexpr (kEightBits<form>) {
            dot += byte * q[0];
          } else {
            dot += (byte & 15) * q[0] + (byte >> 4) * q[16];
          }
        }
      }
      std::uint16_t halves[2];
      std::memcpy(&halves[0], block + 2 * i, 2);
      std::memcpy(&halves[1], block + kHeaderBytes<form> - 32 + 2 * i, 2);
      out[i] = std::fma(static_cast<float>(dot), f32_from_f16(halves[0]) * x.scale[g], out[i]);
      if constexpr (kHasMin<form>) {
        out[i] = std::fma(f32_from_f16(halves[1]), x.scaled_sum[g], out[i]);
      }
    }
  }
}

#endif

}  // namespace brigade::kernels::HWY_NAMESPACE
#if HWY_TARGET == HWY_AVX3_DL
#pragma GCC pop_options
#endif
HWY_AFTER_NAMESPACE();

#endif  // include guard of this target
