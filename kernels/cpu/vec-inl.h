// SPDX-License-Identifier: Apache-2.0
// Compiled once for each target (Highway's include convention): no plain include guard.
#if defined(BRIGADE_KERNELS_CPU_VEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRIGADE_KERNELS_CPU_VEC_INL_H_
#undef BRIGADE_KERNELS_CPU_VEC_INL_H_
#else
#define BRIGADE_KERNELS_CPU_VEC_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/base/float16.h"
#include "hwy/highway.h"

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3_DL
#include <immintrin.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Lanes of V16, whatever the target's registers hold: sums over lanes have one order on every CPU.
inline constexpr std::int64_t kLanes = 16;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;
using FloatPart = hn::Vec<FloatTag>;
inline constexpr int kPartLanes = static_cast<int>(HWY_LANES(float));
inline constexpr int kParts = static_cast<int>(kLanes) / kPartLanes;
inline constexpr FloatTag kFloat{};
inline constexpr IntTag kInt{};

/// Sixteen floats: one register of AVX-512, two of AVX2, sixteen scalars in the fallback. Each
/// operation rounds once a lane as IEEE 754 says, multiply-add included, so that all targets give
/// the same bits.
struct V16 {
  FloatPart part[kParts];
};

HWY_INLINE FloatPart fma_part(FloatPart a, FloatPart b, FloatPart c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  static_assert(kPartLanes == 1, "a target without fused multiply-add must be the scalar one");
  return hn::Set(kFloat, std::fma(hn::GetLane(a), hn::GetLane(b), hn::GetLane(c)));
#endif
}

#define BRIGADE_FOR_PARTS _Pragma("GCC unroll 16") for (int p = 0; p < kParts; ++p)

HWY_INLINE V16 set(float value) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = hn::Set(kFloat, value);
  return r;
}
HWY_INLINE V16 zero() {
  return set(0.0F);
}
HWY_INLINE V16 load(const float* from) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = hn::LoadU(kFloat, from + p * kPartLanes);
  return r;
}
HWY_INLINE void store(const V16& v, float* to) {
  BRIGADE_FOR_PARTS hn::StoreU(v.part[p], kFloat, to + p * kPartLanes);
}
HWY_INLINE V16 add(const V16& a, const V16& b) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = hn::Add(a.part[p], b.part[p]);
  return r;
}
HWY_INLINE V16 sub(const V16& a, const V16& b) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = hn::Sub(a.part[p], b.part[p]);
  return r;
}
HWY_INLINE V16 mul(const V16& a, const V16& b) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = hn::Mul(a.part[p], b.part[p]);
  return r;
}
HWY_INLINE V16 div(const V16& a, const V16& b) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = hn::Div(a.part[p], b.part[p]);
  return r;
}
HWY_INLINE V16 max(const V16& a, const V16& b) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = hn::Max(a.part[p], b.part[p]);
  return r;
}
HWY_INLINE V16 negate(const V16& a) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = hn::Neg(a.part[p]);
  return r;
}
HWY_INLINE V16 absolute(const V16& a) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = hn::Abs(a.part[p]);
  return r;
}
/// a * b + c, rounded once.
HWY_INLINE V16 fma(const V16& a, const V16& b, const V16& c) {
  V16 r;
  BRIGADE_FOR_PARTS r.part[p] = fma_part(a.part[p], b.part[p], c.part[p]);
  return r;
}
/// As fma with the same factor in all lanes.
HWY_INLINE V16 fma(float a, const V16& b, const V16& c) {
  V16 r;
  const FloatPart factor = hn::Set(kFloat, a);
  BRIGADE_FOR_PARTS r.part[p] = fma_part(factor, b.part[p], c.part[p]);
  return r;
}

/// Keeps a sum in its register: gcc 12 otherwise moves all loads of an unrolled group forward and
/// spills the sums.
HWY_INLINE void pin(V16& v) {
#if HWY_TARGET == HWY_AVX3_DL
  asm volatile("" : "+v"(v.part[0].raw));
#elif HWY_TARGET == HWY_AVX2
  asm volatile("" : "+x"(v.part[0].raw), "+x"(v.part[1].raw));
#else
  (void)v;
#endif
}

/// First n (below 16) lanes from memory, the rest 0.
HWY_INLINE V16 load_n(const float* from, std::int64_t n) {
  float lanes[kLanes] = {};
  std::memcpy(lanes, from, static_cast<std::size_t>(n) * sizeof(float));
  return load(lanes);
}
HWY_INLINE void store_n(const V16& v, float* to, std::int64_t n) {
  float lanes[kLanes];
  store(v, lanes);
  std::memcpy(to, lanes, static_cast<std::size_t>(n) * sizeof(float));
}

HWY_INLINE V16 load_f16(const std::uint16_t* from) {
  V16 r;
#if HWY_TARGET == HWY_SCALAR
  BRIGADE_FOR_PARTS r.part[p] = hn::Set(kFloat, f32_from_f16(from[p]));
#else
  constexpr hn::Rebind<hwy::float16_t, FloatTag> kHalf{};
  const auto* halves = reinterpret_cast<const hwy::float16_t*>(from);
  BRIGADE_FOR_PARTS r.part[p] = hn::PromoteTo(kFloat, hn::LoadU(kHalf, halves + p * kPartLanes));
#endif
  return r;
}
HWY_INLINE void store_f16(const V16& v, std::uint16_t* to) {
#if HWY_TARGET == HWY_SCALAR
  BRIGADE_FOR_PARTS to[p] = f16_from_f32(hn::GetLane(v.part[p]));
#else
  constexpr hn::Rebind<hwy::float16_t, FloatTag> kHalf{};
  auto* halves = reinterpret_cast<hwy::float16_t*>(to);
  BRIGADE_FOR_PARTS hn::StoreU(hn::DemoteTo(kHalf, v.part[p]), kHalf, halves + p * kPartLanes);
#endif
}
HWY_INLINE V16 load_bf16(const std::uint16_t* from) {
  V16 r;
#if HWY_TARGET == HWY_SCALAR
  BRIGADE_FOR_PARTS r.part[p] = hn::Set(kFloat, f32_from_bf16(from[p]));
#else
  constexpr hn::Rebind<std::uint16_t, FloatTag> kHalf{};
  constexpr hn::Rebind<std::uint32_t, FloatTag> kWord{};
  BRIGADE_FOR_PARTS {
    const auto words = hn::PromoteTo(kWord, hn::LoadU(kHalf, from + p * kPartLanes));
    r.part[p] = hn::BitCast(kFloat, hn::ShiftLeft<16>(words));
  }
#endif
  return r;
}

/// Lanes from n on replaced by `fill`.
HWY_INLINE V16 keep_first(const V16& v, std::int64_t n, float fill) {
  V16 r;
  const FloatPart limit = hn::Set(kFloat, static_cast<float>(n));
  BRIGADE_FOR_PARTS {
    const FloatPart lane = hn::Iota(kFloat, static_cast<float>(p * kPartLanes));
    r.part[p] = hn::IfThenElse(hn::Lt(lane, limit), v.part[p], hn::Set(kFloat, fill));
  }
  return r;
}

/// Lanes before n replaced by `fill`.
HWY_INLINE V16 drop_first(const V16& v, std::int64_t n, float fill) {
  V16 r;
  const FloatPart limit = hn::Set(kFloat, static_cast<float>(n));
  BRIGADE_FOR_PARTS {
    const FloatPart lane = hn::Iota(kFloat, static_cast<float>(p * kPartLanes));
    r.part[p] = hn::IfThenElse(hn::Lt(lane, limit), hn::Set(kFloat, fill), v.part[p]);
  }
  return r;
}

/// Sum of the lanes in a fixed tree: lane i with lane i + 8, then + 4, + 2, + 1.
HWY_INLINE float reduce_sum(const V16& v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3_DL
#if HWY_TARGET == HWY_AVX2
  const __m256 by8 = _mm256_add_ps(v.part[0].raw, v.part[1].raw);
#else
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(v.part[0].raw),
                                   _mm512_extractf32x8_ps(v.part[0].raw, 1));
#endif
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
#else
  float lanes[kLanes];
  store(v, lanes);
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i)
      lanes[i] += lanes[i + width];
  }
  return lanes[0];
#endif
}
/// Maximum of the lanes, the same in any order.
HWY_INLINE float reduce_max(const V16& v) {
  FloatPart m = v.part[0];
  _Pragma("GCC unroll 16") for (int p = 1; p < kParts; ++p) m = hn::Max(m, v.part[p]);
  return hn::GetLane(hn::MaxOfLanes(kFloat, m));
}

/// e^x: x = n ln 2 + r, |r| <= ln 2 / 2, and Cephes' polynomial of degree 6 for e^r; at most 2 ulp
/// off. 0 below -87, e^88 above 88. e^0 is exactly 1.
HWY_INLINE V16 exp(const V16& x) {
  V16 r;
  constexpr hn::RebindToUnsigned<FloatTag> kBits{};
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const FloatPart magic = hn::Set(kFloat, 12582912.0F);
  const FloatPart one = hn::Set(kFloat, 1.0F);
  BRIGADE_FOR_PARTS {
    const FloatPart at = hn::Min(x.part[p], hn::Set(kFloat, 88.0F));
    const FloatPart shifted = fma_part(at, hn::Set(kFloat, 1.44269504F), magic);
    const FloatPart n = hn::Sub(shifted, magic);
    FloatPart rest = fma_part(n, hn::Set(kFloat, -0.693359375F), at);
    rest = fma_part(n, hn::Set(kFloat, 2.12194440e-4F), rest);
    FloatPart poly = hn::Set(kFloat, 1.9875691500e-4F);
    poly = fma_part(poly, rest, hn::Set(kFloat, 1.3981999507e-3F));
    poly = fma_part(poly, rest, hn::Set(kFloat, 8.3334519073e-3F));
    poly = fma_part(poly, rest, hn::Set(kFloat, 4.1665795894e-2F));
    poly = fma_part(poly, rest, hn::Set(kFloat, 1.6666665459e-1F));
    poly = fma_part(poly, rest, hn::Set(kFloat, 5.0000001201e-1F));
    const FloatPart mantissa = hn::Add(fma_part(poly, hn::Mul(rest, rest), rest), one);
    const auto power =
        hn::Add(hn::ShiftLeft<23>(hn::BitCast(kBits, shifted)), hn::Set(kBits, 0x3f800000U));
    const FloatPart value = hn::Mul(mantissa, hn::BitCast(kFloat, power));
    r.part[p] = hn::IfThenZeroElse(hn::Lt(x.part[p], hn::Set(kFloat, -87.0F)), value);
  }
  return r;
}

/// tanh x: below 0.625 Cephes' odd polynomial, else 1 - 2 / (e^(2|x|) + 1) with x's sign; at most 3
/// ulp off.
HWY_INLINE V16 tanh(const V16& x) {
  const V16 size = absolute(x);
  const V16 far = exp(add(size, size));
  V16 r;
  const FloatPart one = hn::Set(kFloat, 1.0F);
  BRIGADE_FOR_PARTS {
    const FloatPart square = hn::Mul(x.part[p], x.part[p]);
    FloatPart poly = hn::Set(kFloat, -5.70498872745e-3F);
    poly = fma_part(poly, square, hn::Set(kFloat, 2.06390887954e-2F));
    poly = fma_part(poly, square, hn::Set(kFloat, -5.37397155531e-2F));
    poly = fma_part(poly, square, hn::Set(kFloat, 1.33314422036e-1F));
    poly = fma_part(poly, square, hn::Set(kFloat, -3.33332819422e-1F));
    const FloatPart near = fma_part(hn::Mul(poly, square), x.part[p], x.part[p]);
    const FloatPart rest = hn::Div(hn::Set(kFloat, 2.0F), hn::Add(far.part[p], one));
    const FloatPart outer = hn::CopySign(hn::Sub(one, rest), x.part[p]);
    const auto inner = hn::Lt(size.part[p], hn::Set(kFloat, 0.625F));
    r.part[p] = hn::IfThenElse(inner, near, outer);
  }
  return r;
}

/// Splits 32 floats into those at even and those at odd places, and back.
HWY_INLINE void load_pairs(const float* from, V16& even, V16& odd) {
#if HWY_TARGET == HWY_SCALAR
  BRIGADE_FOR_PARTS {
    even.part[p] = hn::Set(kFloat, from[2 * p]);
    odd.part[p] = hn::Set(kFloat, from[2 * p + 1]);
  }
#else
  BRIGADE_FOR_PARTS hn::LoadInterleaved2(kFloat, from + 2 * p * kPartLanes, even.part[p],
                                         odd.part[p]);
#endif
}
HWY_INLINE void store_pairs(const V16& even, const V16& odd, float* to) {
#if HWY_TARGET == HWY_SCALAR
  BRIGADE_FOR_PARTS {
    to[2 * p] = hn::GetLane(even.part[p]);
    to[2 * p + 1] = hn::GetLane(odd.part[p]);
  }
#else
  BRIGADE_FOR_PARTS hn::StoreInterleaved2(even.part[p], odd.part[p], kFloat,
                                          to + 2 * p * kPartLanes);
#endif
}

}  // namespace brigade::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of this target
