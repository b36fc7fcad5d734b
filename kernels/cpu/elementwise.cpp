// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h

#include <limits>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::HWY_NAMESPACE {
namespace {

/// Calls body(offset, load, store) for each 16 elements of `size`, the last ones padded with zeros,
/// so that a lane's arithmetic does not depend on where in a row it is.
template <typename Body>
HWY_INLINE void for_each_16(std::int64_t size, const Body& body) {
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    body([i](const float* from) HWY_ATTR { return load(from + i); },
         [i](const V16& v, float* to) HWY_ATTR { store(v, to + i); });
  }
  if (i < size) {
    const std::int64_t rest = size - i;
    body([i, rest](const float* from) HWY_ATTR { return load_n(from + i, rest); },
         [i, rest](const V16& v, float* to) HWY_ATTR { store_n(v, to + i, rest); });
  }
}

void rms_norm(const float* x, const float* weight, std::int64_t size, float eps, float* out) {
  V16 squares = zero();
  for_each_16(size, [&](auto get, auto /*put*/) HWY_ATTR {
    const V16 v = get(x);
    squares = fma(v, v, squares);
  });
  const float mean = reduce_sum(squares) / static_cast<float>(size);
  const V16 scale = set(1.0F / std::sqrt(mean + eps));
  for_each_16(size,
              [&](auto get, auto put) HWY_ATTR { put(mul(mul(get(x), scale), get(weight)), out); });
}

HWY_INLINE void rotate(V16& a, V16& b, const V16& cos, const V16& sin) {
  const V16 first = fma(a, cos, negate(mul(b, sin)));
  b = fma(b, cos, mul(a, sin));
  a = first;
}

/// `count` pairs at most 16.
HWY_INLINE void rotate_adjacent(float* x, const V16& cos, const V16& sin, std::int64_t count) {
  V16 even;
  V16 odd;
  if (count == kLanes) {
    load_pairs(x, even, odd);
    rotate(even, odd, cos, sin);
    store_pairs(even, odd, x);
    return;
  }
  float pairs[2 * kLanes] = {};
  const std::size_t bytes = static_cast<std::size_t>(2 * count) * sizeof(float);
  std::memcpy(pairs, x, bytes);
  load_pairs(pairs, even, odd);
  rotate(even, odd, cos, sin);
  store_pairs(even, odd, pairs);
  std::memcpy(x, pairs, bytes);
}

HWY_INLINE void rotate_halves(float* x, float* y, const V16& cos, const V16& sin,
                              std::int64_t count) {
  V16 a = count == kLanes ? load(x) : load_n(x, count);
  V16 b = count == kLanes ? load(y) : load_n(y, count);
  rotate(a, b, cos, sin);
  if (count == kLanes) {
    store(a, x);
    store(b, y);
  } else {
    store_n(a, x, count);
    store_n(b, y, count);
  }
}

void rope(float* x, std::int64_t num_heads, std::int64_t head_dim, bool adjacent, const float* cos,
          const float* sin, std::int64_t half) {
  for (std::int64_t i = 0; i < half; i += kLanes) {
    const std::int64_t count = half - i < kLanes ? half - i : kLanes;
    const V16 c = count == kLanes ? load(cos + i) : load_n(cos + i, count);
    const V16 s = count == kLanes ? load(sin + i) : load_n(sin + i, count);
    for (std::int64_t h = 0; h < num_heads; ++h) {
      float* head = x + h * head_dim;
      if (adjacent) {
        rotate_adjacent(head + 2 * i, c, s, count);
      } else {
        rotate_halves(head + i, head + half + i, c, s, count);
      }
    }
  }
}

void silu_mul(const float* gate, const float* up, std::int64_t size, float* out) {
  for_each_16(size, [&](auto get, auto put) HWY_ATTR {
    const V16 g = get(gate);
    put(mul(div(g, add(set(1.0F), exp(negate(g)))), get(up)), out);
  });
}

/// The tanh form of GELU: 0.5 (1 + tanh u) is 1 / (1 + e^(-2u)), u = sqrt(2 / pi) (x + 0.044715
/// x^3).
void gelu_mul(const float* gate, const float* up, std::int64_t size, float* out) {
  constexpr float kTwiceSqrt = -1.5957691216057308F;
  for_each_16(size, [&](auto get, auto put) HWY_ATTR {
    const V16 g = get(gate);
    const V16 cubic = fma(mul(set(0.044715F), mul(g, g)), g, g);
    const V16 power = exp(mul(set(kTwiceSqrt), cubic));
    put(mul(div(g, add(set(1.0F), power)), get(up)), out);
  });
}

void scale_row(float* x, float factor, std::int64_t size) {
  for_each_16(size, [&](auto get, auto put) HWY_ATTR { put(mul(get(x), set(factor)), x); });
}

void soft_cap(float* x, float cap, std::int64_t size) {
  for_each_16(size, [&](auto get, auto put)
                        HWY_ATTR { put(mul(tanh(div(get(x), set(cap))), set(cap)), x); });
}

void add_scaled(float* x, float factor, const float* y, std::int64_t size) {
  for_each_16(size, [&](auto get, auto put) HWY_ATTR { put(fma(factor, get(y), get(x)), x); });
}

void add_rows(float* x, const float* y, std::int64_t size) {
  for_each_16(size, [&](auto get, auto put) HWY_ATTR { put(add(get(x), get(y)), x); });
}

/// 16 of `size` values from i on; those past the end are minus infinity, whose power is 0.
HWY_INLINE V16 load_logits(const float* x, std::int64_t size, std::int64_t i) {
  if (i + kLanes <= size) return load(x + i);
  return keep_first(load_n(x + i, size - i), size - i, -std::numeric_limits<float>::infinity());
}

void sum_exp(const float* x, std::int64_t size, LogitSum& out) {
  V16 best = set(-std::numeric_limits<float>::infinity());
  V16 probe = zero();  // 0 times what is not finite is NaN
  for_each_16(size, [&](auto get, auto /*put*/) HWY_ATTR { probe = fma(0.0F, get(x), probe); });
  for (std::int64_t i = 0; i < size; i += kLanes)
    best = max(best, load_logits(x, size, i));
  out.peak = reduce_max(best);
  out.finite = reduce_sum(probe) == 0;
  if (!out.finite) return;
  const V16 peak = set(out.peak);
  V16 sum = zero();
  for (std::int64_t i = 0; i < size; i += kLanes)
    sum = add(sum, exp(sub(load_logits(x, size, i), peak)));
  out.sum = reduce_sum(sum);
}

void to_f16(const float* x, std::int64_t size, std::uint16_t* out) {
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes)
    store_f16(load(x + i), out + i);
  if (i < size) {
    std::uint16_t halves[kLanes];
    store_f16(load_n(x + i, size - i), halves);
    std::memcpy(out + i, halves, static_cast<std::size_t>(size - i) * sizeof(std::uint16_t));
  }
}

}  // namespace

ElementwiseKernels elementwise_table() {
  return {.rms_norm = &rms_norm,
          .rope = &rope,
          .silu_mul = &silu_mul,
          .gelu_mul = &gelu_mul,
          .add = &add_rows,
          .add_scaled = &add_scaled,
          .scale = &scale_row,
          .soft_cap = &soft_cap,
          .sum_exp = &sum_exp,
          .to_f16 = &to_f16};
}

}  // namespace brigade::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels {

ElementwiseKernels elementwise_kernels(CpuTarget target) {
  switch (target) {
#if HWY_TARGETS & HWY_AVX3_DL
    case CpuTarget::kAvx3Dl:
      return N_AVX3_DL::elementwise_table();
#endif
#if HWY_TARGETS & HWY_AVX2
    case CpuTarget::kAvx2:
      return N_AVX2::elementwise_table();
#endif
    default:
      return HWY_NAMESPACE::elementwise_table();
  }
}

}  // namespace brigade::kernels
#endif  // HWY_ONCE
