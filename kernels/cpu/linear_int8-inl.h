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
inline constexpr FormTraits kTraits = form_traits(form);
template <WeightForm form>
inline constexpr FormLayout kLayout = form_layout(form);
/// Whether the weights that meet the activations are bytes, not halves of one.
[[maybe_unused]] constexpr bool takes_bytes(WeightForm form) {
  return form_traits(form).wide || form_traits(form).table;
}

/// Where a tile's activations are, and what goes for a whole segment.
struct TileInput {
  const std::int8_t* q;
  const std::int8_t* q_low;
  const float* scale;
  const float* scaled_sum;
  const std::int32_t* offset;
  const std::uint8_t* ahead;  ///< weights that will be read a panel or so later, or null
  std::int64_t first_groups;  ///< K forms: those of the first f16 scale
  const std::uint8_t* table;  ///< kTable4: [16], 128 added

  /// Moves on by one group of R rows.
  template <WeightForm form, int R>
  HWY_INLINE void next_group() {
    q += 32 * R;
    if (q_low != nullptr) q_low += 32 * R;
    scale += R;
    scaled_sum += R * kTraits<form>.halves;
    offset += R * kTraits<form>.halves;
  }
};

/// Goes through a panel, group by group.
template <WeightForm form>
struct Walk {
  const std::uint8_t* super;  ///< K forms: f16 scales, then minima, of the group
  const std::uint8_t* block;
  std::int64_t left;

  HWY_INLINE Walk(const std::uint8_t* panel, std::int64_t first_groups)
      : super(panel), block(panel + kLayout<form>.super_bytes), left(first_groups) {}

  HWY_INLINE void enter_group(const std::uint8_t*& ahead) {
    if constexpr (kTraits<form>.super) {
      if (left == 0) {
        super = block;
        block += kLayout<form>.super_bytes;
        left = kSuperGroups;
        if (ahead != nullptr) ahead += kLayout<form>.super_bytes;
      }
      --left;
    }
  }
  HWY_INLINE void leave_group() { block += kLayout<form>.group_bytes; }
  [[nodiscard]] HWY_INLINE const std::uint8_t* lines() const {
    return block + kLayout<form>.header_bytes;
  }
  /// int8 scales or minima of a K form's half.
  [[nodiscard]] HWY_INLINE const std::uint8_t* sub_scales(int half) const {
    return block + 16 * half;
  }
  [[nodiscard]] HWY_INLINE const std::uint8_t* sub_mins(int half) const {
    return block + 16 * (kTraits<form>.halves + half);
  }
};

/// The hardware asks for the next block too late once several rows of activations make each last;
/// batches of 2 to 16 rows gain 25 to 40 % from DRAM.
template <WeightForm form>
HWY_INLINE void prefetch_block(const std::uint8_t*& ahead) {
  if (ahead == nullptr) return;
#pragma GCC unroll 10
  for (std::int64_t at = 0; at < kLayout<form>.group_bytes; at += 64)
    __builtin_prefetch(ahead + at);
  ahead += kLayout<form>.group_bytes;
}

HWY_INLINE std::int32_t load_word(const std::int8_t* from) {
  std::int32_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

/// Which four columns (jj, 0 to 7) of a group come at step t: with two weights a byte both halves
/// of a line together.
template <WeightForm form>
constexpr int columns_at(int t) {
  return !kTraits<form>.wide && kTraits<form>.halves == 1 ? t % 2 * 4 + t / 2 : t;
}

#if HWY_TARGET == HWY_AVX3_DL

inline constexpr int kNarrowTileRows = 12;
inline constexpr int kWideTileRows = 12;
inline constexpr bool kSplitActivations = false;

HWY_INLINE __m512i dot_line(__m512i sum, __m512i weights, const std::int8_t* q) {
  sum = _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(load_word(q)));
  asm volatile("" : "+v"(sum));
  return sum;
}

/// 16 rows times columns 4 jj to 4 jj + 3.
template <WeightForm form>
HWY_INLINE __m512i load_weights(const std::uint8_t* lines, int jj, __m512i table) {
  if constexpr (kTraits<form>.wide) return _mm512_loadu_si512(lines + 64 * jj);
  const __m512i line = _mm512_loadu_si512(lines + 64 * (jj % 4));
  const __m512i codes =
      _mm512_and_si512(jj < 4 ? line : _mm512_srli_epi16(line, 4), _mm512_set1_epi8(15));
  return kTraits<form>.table ? _mm512_shuffle_epi8(table, codes) : codes;
}

HWY_INLINE __m512 load_halves(const std::uint8_t* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
HWY_INLINE __m512 load_bytes(const std::uint8_t* from) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}

template <WeightForm form>
HWY_INLINE __m512 load_scale(const Walk<form>& at, int half) {
  if constexpr (kTraits<form>.table) return _mm512_loadu_ps(at.block);
  if constexpr (!kTraits<form>.super) return load_halves(at.block);
  return _mm512_mul_ps(load_halves(at.super), load_bytes(at.sub_scales(half)));
}
template <WeightForm form>
HWY_INLINE __m512 load_minimum(const Walk<form>& at, int half) {
  if constexpr (!kTraits<form>.super) return load_halves(at.block + 32);
  return _mm512_mul_ps(load_halves(at.super + 32), load_bytes(at.sub_mins(half)));
}

template <WeightForm form, int R>
void int8_tile(const std::uint8_t* panel, std::int64_t groups, TileInput x, float* out) {
  constexpr FormTraits kForm = kTraits<form>;
  constexpr int kSteps = 8 / kForm.halves;
  __m512i table = _mm512_setzero_si512();
  if constexpr (kForm.table) {
    table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x.table)));
  }
  __m512 acc[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
    acc[r] = _mm512_setzero_ps();
  Walk<form> at(panel, x.first_groups);
  for (std::int64_t g = 0; g < groups; ++g) {
    at.enter_group(x.ahead);
    prefetch_block<form>(x.ahead);
#pragma GCC unroll 2
    for (int half = 0; half < kForm.halves; ++half) {
      __m512i sum[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        sum[r] = kForm.zero_point == 0 ? _mm512_setzero_si512()
                                       : _mm512_set1_epi32(x.offset[half * R + r]);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kSteps; ++t) {
        const int jj = columns_at<form>(half * kSteps + t);
        const __m512i weights = load_weights<form>(at.lines(), jj, table);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
          sum[r] = dot_line(sum[r], weights, x.q + (jj * R + r) * 4);
      }
      const __m512 scale = load_scale(at, half);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(x.scale[r]));
        acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), both, acc[r]);
      }
      if constexpr (kForm.min) {
        const __m512 minimum = load_minimum(at, half);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          acc[r] = _mm512_fmadd_ps(minimum, _mm512_set1_ps(x.scaled_sum[half * R + r]), acc[r]);
        }
      }
    }
    at.leave_group();
    x.next_group<form, R>();
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
    _mm512_storeu_ps(out + 16 * r, acc[r]);
}

#elif HWY_TARGET == HWY_AVX2

inline constexpr int kNarrowTileRows = 4;
inline constexpr int kWideTileRows = 2;
inline constexpr bool kSplitActivations = true;

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

/// Rows 8 part to 8 part + 7 times columns 4 jj to 4 jj + 3.
template <WeightForm form>
HWY_INLINE __m256i load_weights(const std::uint8_t* lines, int jj, int part, __m256i table) {
  if constexpr (kTraits<form>.wide) return load_line(lines + 64 * jj + 32 * part);
  const __m256i line = load_line(lines + 64 * (jj % 4) + 32 * part);
  const __m256i codes =
      _mm256_and_si256(jj < 4 ? line : _mm256_srli_epi16(line, 4), _mm256_set1_epi8(15));
  return kTraits<form>.table ? _mm256_shuffle_epi8(table, codes) : codes;
}

/// The pair sums of a group or a half of it: [r][part], for bytes also those of q_low.
template <WeightForm form, int R>
struct GroupSums {
  static constexpr bool kBytes = takes_bytes(form);
  __m256i high[R][2];
  __m256i low[kBytes ? R : 1][2];

  HWY_INLINE void add_lines(const std::uint8_t* lines, const TileInput& x, int half,
                            __m256i table) {
    constexpr int kSteps = 8 / kTraits<form>.halves;
#pragma GCC unroll 8
    for (int t = 0; t < kSteps; ++t) {
      const int jj = columns_at<form>(half * kSteps + t);
      const __m256i weights[2] = {load_weights<form>(lines, jj, 0, table),
                                  load_weights<form>(lines, jj, 1, table)};
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256i h = _mm256_set1_epi32(load_word(x.q + (jj * R + r) * 4));
        high[r][0] = add_pairs(t == 0, high[r][0], weights[0], h);
        high[r][1] = add_pairs(t == 0, high[r][1], weights[1], h);
        if constexpr (kBytes) {
          const __m256i l = _mm256_set1_epi32(load_word(x.q_low + (jj * R + r) * 4));
          low[r][0] = add_pairs(t == 0, low[r][0], weights[0], l);
          low[r][1] = add_pairs(t == 0, low[r][1], weights[1], l);
        }
      }
    }
  }

  /// The exact dots of 8 rows of weights with row r.
  HWY_INLINE __m256i dot(int r, int part, std::int32_t offset) const {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_madd_epi16(high[r][part], ones);
    if constexpr (kBytes) {
      sum = _mm256_add_epi32(_mm256_slli_epi32(sum, 4), _mm256_madd_epi16(low[r][part], ones));
    }
    return kTraits<form>.zero_point == 0 ? sum : _mm256_add_epi32(sum, _mm256_set1_epi32(offset));
  }
};

HWY_INLINE __m256 load_halves(const std::uint8_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
HWY_INLINE __m256 load_bytes(const std::uint8_t* from) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}

template <WeightForm form>
HWY_INLINE __m256 load_scale(const Walk<form>& at, int half, int part) {
  if constexpr (kTraits<form>.table) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(at.block) + 8 * part);
  }
  if constexpr (!kTraits<form>.super) return load_halves(at.block + 16 * part);
  return _mm256_mul_ps(load_halves(at.super + 16 * part),
                       load_bytes(at.sub_scales(half) + 8 * part));
}
template <WeightForm form>
HWY_INLINE __m256 load_minimum(const Walk<form>& at, int half, int part) {
  if constexpr (!kTraits<form>.super) return load_halves(at.block + 32 + 16 * part);
  return _mm256_mul_ps(load_halves(at.super + 32 + 16 * part),
                       load_bytes(at.sub_mins(half) + 8 * part));
}

template <WeightForm form, int R>
void int8_tile(const std::uint8_t* panel, std::int64_t groups, TileInput x, float* out) {
  constexpr FormTraits kForm = kTraits<form>;
  // From 3 rows on all registers are needed for the pair sums: acc then lives in L1.
  constexpr bool kInRegisters = R <= 2;
  __m256i table = _mm256_setzero_si256();
  if constexpr (kForm.table) {
    table = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x.table)));
  }
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
  Walk<form> at(panel, x.first_groups);
  for (std::int64_t g = 0; g < groups; ++g) {
    at.enter_group(x.ahead);
    prefetch_block<form>(x.ahead);
#pragma GCC unroll 2
    for (int half = 0; half < kForm.halves; ++half) {
      GroupSums<form, R> sums;
      sums.add_lines(at.lines(), x, half, table);
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        const __m256 scale = load_scale(at, half, part);
        __m256 minimum = _mm256_setzero_ps();
        if constexpr (kForm.min) minimum = load_minimum(at, half, part);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          float* memory = out + 16 * r + 8 * part;
          __m256 sum;
          if constexpr (kInRegisters) {
            sum = acc[r][part];
          } else {
            sum = _mm256_loadu_ps(memory);
          }
          const __m256 both = _mm256_mul_ps(scale, _mm256_set1_ps(x.scale[r]));
          const __m256i dot = sums.dot(r, part, x.offset[half * R + r]);
          sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), both, sum);
          if constexpr (kForm.min) {
            sum = _mm256_fmadd_ps(minimum, _mm256_set1_ps(x.scaled_sum[half * R + r]), sum);
          }
          if constexpr (kInRegisters) {
            acc[r][part] = sum;
          } else {
            _mm256_storeu_ps(memory, sum);
          }
        }
      }
    }
    at.leave_group();
    x.next_group<form, R>();
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

inline constexpr int kNarrowTileRows = 1;
inline constexpr int kWideTileRows = 1;
inline constexpr bool kSplitActivations = false;

template <typename T>
T value_at(const std::uint8_t* from, int i) {
  T value;
  std::memcpy(&value, from + static_cast<std::size_t>(i) * sizeof(T), sizeof value);
  return value;
}

/// Scale, or with `min` minimum, of weight row i.
template <WeightForm form>
float scale_at(const Walk<form>& at, int half, int i, bool min) {
  if constexpr (kTraits<form>.table) return value_at<float>(at.block, i);
  const std::uint8_t* halves = (kTraits<form>.super ? at.super : at.block) + (min ? 32 : 0);
  const float scale = f32_from_f16(value_at<std::uint16_t>(halves, i));
  if constexpr (!kTraits<form>.super) return scale;
  const std::uint8_t* bytes = min ? at.sub_mins(half) : at.sub_scales(half);
  return scale * static_cast<float>(value_at<std::int8_t>(bytes, i));
}

/// The exact dot of weight row i with columns [begin, end) of a group.
template <WeightForm form>
std::int32_t dot_of(const std::uint8_t* lines, int i, int begin, int end, const TileInput& x) {
  std::int32_t dot = 0;
  for (int k = begin; k < end; ++k) {
    const int byte = kTraits<form>.wide ? k : k % 16;
    int code = lines[64 * (byte / 4) + 4 * i + byte % 4];
    if constexpr (!kTraits<form>.wide) code = k < 16 ? code & 15 : code >> 4;
    dot += (kTraits<form>.table ? x.table[code] : code) * x.q[k];
  }
  return dot;
}

template <WeightForm form, int R>
void int8_tile(const std::uint8_t* panel, std::int64_t groups, TileInput x, float* out) {
  static_assert(R == 1, "rows share no loads here");
  constexpr FormTraits kForm = kTraits<form>;
  constexpr int kWidth = 32 / kForm.halves;
  for (int i = 0; i < 16; ++i)
    out[i] = 0;
  Walk<form> at(panel, x.first_groups);
  for (std::int64_t g = 0; g < groups; ++g) {
    at.enter_group(x.ahead);
    for (int half = 0; half < kForm.halves; ++half) {
      for (int i = 0; i < 16; ++i) {
        std::int32_t dot = dot_of<form>(at.lines(), i, kWidth * half, kWidth * (half + 1), x);
        if constexpr (kForm.zero_point != 0) dot += x.offset[half];
        const float scale = scale_at(at, half, i, /*min=*/false) * x.scale[0];
        out[i] = std::fma(static_cast<float>(dot), scale, out[i]);
        if constexpr (kForm.min) {
          out[i] = std::fma(scale_at(at, half, i, /*min=*/true), x.scaled_sum[half], out[i]);
        }
      }
    }
    at.leave_group();
    x.next_group<form, R>();
  }
}

#endif

}  // namespace brigade::kernels::HWY_NAMESPACE
#if HWY_TARGET == HWY_AVX3_DL
#pragma GCC pop_options
#endif
HWY_AFTER_NAMESPACE();

#endif  // include guard of this target
