// SPDX-License-Identifier: Apache-2.0
/// ggml's blocks, as llama.cpp's ggml-common.h lays them out: how 32 of their weights are found.
#include <cmath>
#include <cstring>
#include <span>

#include "common/base/check.h"
#include "common/base/float16.h"
#include "kernels/weight_format.h"

namespace brigade::kernels {
namespace {

using model::TensorType;

constexpr std::int8_t kIq4Table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};
/// Twice the values of a 4-bit float (E2M1), whose halves are not integers.
constexpr std::int8_t kE2m1Table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

unsigned byte_at(const std::byte* p, std::int64_t i) {
  return std::to_integer<unsigned>(p[i]);
}

std::uint16_t half_at(const std::byte* p) {
  return load_as<std::uint16_t>(p);
}

std::uint16_t negated(std::uint16_t half) {
  return static_cast<std::uint16_t>(half ^ 0x8000U);
}

/// Stored bytes in memory that cannot be the codes': only then does the compiler turn the loops
/// over them into vector code.
template <std::size_t size>
struct Bytes {
  explicit Bytes(const std::byte* from) { std::memcpy(bytes, from, size); }
  unsigned operator[](std::size_t i) const { return bytes[i]; }
  std::uint8_t bytes[size];
};

/// Types with blocks of 32: element j is the low half of byte j, element 16 + j the high half.
void load_nibbles(const std::byte* stored, std::uint8_t* codes) {
  const Bytes<16> qs(stored);
  for (std::size_t j = 0; j < 16; ++j) {
    codes[j] = static_cast<std::uint8_t>(qs[j] & 15U);
    codes[16 + j] = static_cast<std::uint8_t>(qs[j] >> 4U);
  }
}

/// A byte of 0 or 1 for each bit, the lowest first.
std::uint64_t spread_bits(unsigned byte) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  const std::uint64_t masked = (byte * kOnes) & 0x8040201008040201U;
  return ((masked + 0x7f * kOnes) >> 7U) & kOnes;
}

/// As load_nibbles with a fifth bit of element i in bit i of `high`, and `add` to all.
void load_five_bits(const std::byte* qs, std::uint32_t high, unsigned add, std::uint8_t* codes) {
  load_nibbles(qs, codes);
  for (unsigned i = 0; i < 4; ++i) {
    std::uint64_t eight;
    std::memcpy(&eight, codes + 8 * i, sizeof eight);
    eight += 16 * spread_bits((high >> (8 * i)) & 255U) + add * 0x0101010101010101U;
    std::memcpy(codes + 8 * i, &eight, sizeof eight);
  }
}

/// A K type's 12 bytes of eight 6-bit scales and eight 6-bit minima.
void load_six_bits(const std::byte* s, std::int64_t j, StoredGroup& group) {
  unsigned scale = 0;
  unsigned min = 0;
  if (j < 4) {
    scale = byte_at(s, j) & 63U;
    min = byte_at(s, j + 4) & 63U;
  } else {
    scale = (byte_at(s, j + 4) & 15U) | ((byte_at(s, j - 4) >> 6U) << 4U);
    min = (byte_at(s, j + 4) >> 4U) | ((byte_at(s, j) >> 6U) << 4U);
  }
  group.sub_scale[0] = group.sub_scale[1] = static_cast<std::int8_t>(scale);
  group.sub_min[0] = group.sub_min[1] = static_cast<std::int8_t>(min);
}

void load_q2_k(const std::byte* block, std::int64_t g, StoredGroup& group) {
  const Bytes<32> qs(block + 16 + g / 4 * 32);
  const auto shift = static_cast<unsigned>(g % 4 * 2);
  for (std::size_t i = 0; i < 32; ++i)
    group.codes[i] = static_cast<std::uint8_t>((qs[i] >> shift) & 3U);
  group.scale = half_at(block + 80);
  group.min = negated(half_at(block + 82));
  for (std::int64_t h = 0; h < 2; ++h) {
    const unsigned both = byte_at(block, 2 * g + h);
    group.sub_scale[h] = static_cast<std::int8_t>(both & 15U);
    group.sub_min[h] = static_cast<std::int8_t>(both >> 4U);
  }
}

/// weight = d * scale * (code - 4): the minimum is -d times 4 * scale, which fits an int8.
void load_q3_k(const std::byte* block, std::int64_t g, StoredGroup& group) {
  const Bytes<32> hmask(block);
  const Bytes<32> qs(block + 32 + g / 4 * 32);
  const std::byte* scales = block + 96;
  const auto shift = static_cast<unsigned>(g % 4 * 2);
  const auto bit = static_cast<unsigned>(g);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned high = (hmask[i] >> bit) & 1U;
    group.codes[i] = static_cast<std::uint8_t>(((qs[i] >> shift) & 3U) | (high << 2U));
  }
  group.scale = half_at(block + 108);
  group.min = negated(group.scale);
  for (std::int64_t h = 0; h < 2; ++h) {
    const std::int64_t i = 2 * g + h;
    const unsigned low = i < 8 ? byte_at(scales, i) & 15U : byte_at(scales, i - 8) >> 4U;
    const unsigned high = (byte_at(scales, 8 + i % 4) >> static_cast<unsigned>(i / 4 * 2)) & 3U;
    const int scale = static_cast<int>(low | (high << 4U)) - 32;
    group.sub_scale[h] = static_cast<std::int8_t>(scale);
    group.sub_min[h] = static_cast<std::int8_t>(4 * scale);
  }
}

void load_q4_k(const std::byte* block, std::int64_t g, StoredGroup& group) {
  const Bytes<32> qs(block + 16 + g / 2 * 32);
  const auto shift = static_cast<unsigned>(g % 2 * 4);
  for (std::size_t i = 0; i < 32; ++i)
    group.codes[i] = static_cast<std::uint8_t>((qs[i] >> shift) & 15U);
  group.scale = half_at(block);
  group.min = negated(half_at(block + 2));
  load_six_bits(block + 4, g, group);
}

void load_q5_k(const std::byte* block, std::int64_t g, StoredGroup& group) {
  const Bytes<32> qh(block + 16);
  const Bytes<32> qs(block + 48 + g / 2 * 32);
  const auto shift = static_cast<unsigned>(g % 2 * 4);
  const auto bit = static_cast<unsigned>(g);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned high = (qh[i] >> bit) & 1U;
    group.codes[i] = static_cast<std::uint8_t>(((qs[i] >> shift) & 15U) | (high << 4U));
  }
  group.scale = half_at(block);
  group.min = negated(half_at(block + 2));
  load_six_bits(block + 4, g, group);
}

void load_q6_k(const std::byte* block, std::int64_t g, StoredGroup& group) {
  const Bytes<32> ql(block + g / 4 * 64 + g % 2 * 32);
  const Bytes<32> qh(block + 128 + g / 4 * 32);
  const unsigned low_shift = g % 4 >= 2 ? 4 : 0;
  const auto high_shift = static_cast<unsigned>(g % 4 * 2);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned low = (ql[i] >> low_shift) & 15U;
    const unsigned high = (qh[i] >> high_shift) & 3U;
    group.codes[i] = static_cast<std::uint8_t>((low | (high << 4U)) + 96);  // 128 - 32
  }
  group.scale = half_at(block + 208);
  for (std::int64_t h = 0; h < 2; ++h)
    group.sub_scale[h] = load_as<std::int8_t>(block + 192 + 2 * g + h);
}

void load_iq4_xs(const std::byte* block, std::int64_t g, StoredGroup& group) {
  const unsigned low = (byte_at(block, 4 + g / 2) >> static_cast<unsigned>(g % 2 * 4)) & 15U;
  const unsigned high = (half_at(block + 2) >> static_cast<unsigned>(2 * g)) & 3U;
  load_nibbles(block + 8 + 16 * g, group.codes);
  const int scale = static_cast<int>(low | (high << 4U)) - 32;
  group.wide_scale = f32_from_f16(half_at(block)) * static_cast<float>(scale);
}

void load_q4_0(const std::byte* block, std::int64_t /*g*/, StoredGroup& group) {
  group.scale = half_at(block);
  load_nibbles(block + 2, group.codes);
}

void load_q4_1(const std::byte* block, std::int64_t /*g*/, StoredGroup& group) {
  group.scale = half_at(block);
  group.min = half_at(block + 2);
  load_nibbles(block + 4, group.codes);
}

void load_q5_0(const std::byte* block, std::int64_t /*g*/, StoredGroup& group) {
  group.scale = half_at(block);
  // 128 - 16
  load_five_bits(block + 6, load_as<std::uint32_t>(block + 2), 112, group.codes);
}

void load_q5_1(const std::byte* block, std::int64_t /*g*/, StoredGroup& group) {
  group.scale = half_at(block);
  group.min = half_at(block + 2);
  load_five_bits(block + 8, load_as<std::uint32_t>(block + 4), 0, group.codes);
}

void load_q8_0(const std::byte* block, std::int64_t /*g*/, StoredGroup& group) {
  group.scale = half_at(block);
  const Bytes<32> qs(block + 2);
  for (std::size_t i = 0; i < 32; ++i)
    group.codes[i] = static_cast<std::uint8_t>(qs[i] ^ 128U);
}

void load_iq4_nl(const std::byte* block, std::int64_t /*g*/, StoredGroup& group) {
  group.wide_scale = f32_from_f16(half_at(block));
  load_nibbles(block + 2, group.codes);
}

void load_mxfp4(const std::byte* block, std::int64_t /*g*/, StoredGroup& group) {
  // The exponent counts whole values; the table has them doubled.
  group.wide_scale = std::ldexp(1.0F, static_cast<int>(byte_at(block, 0)) - 128);
  load_nibbles(block + 1, group.codes);
}

/// `load` is a constant, so that a run of groups is one loop without a call.
template <auto load>
void load_run(const StoredFormat& format, const std::byte* row, std::int64_t first,
              std::span<StoredGroup> groups) {
  const std::int64_t in_block = format.block_elements / kGroupSize;
  const std::byte* block = row + first / in_block * format.block_bytes;
  std::int64_t g = first % in_block;
  for (StoredGroup& group : groups) {
    load(block, g, group);
    if (++g < in_block) continue;
    g = 0;
    block += format.block_bytes;
  }
}

/// The integer is made before it is scaled, so that an infinite scale meets no difference of
/// infinities.
void decode_group(const StoredFormat& format, const StoredGroup& group, double* out) {
  const FormTraits traits = form_traits(format.form);
  const bool centred = format.type == TensorType::kQ3_K;
  const int zero_point = centred ? 4 : traits.zero_point;
  const std::int8_t* table = traits.table ? code_table(format.type) : nullptr;
  for (int i = 0; i < kGroupSize; ++i) {
    const int half = i / 16;
    double scale = traits.table ? group.wide_scale : f32_from_f16(group.scale);
    double min = traits.min && !centred ? f32_from_f16(group.min) : 0.0F;
    if (traits.super) scale *= group.sub_scale[half];
    if (traits.super && traits.min && !centred) min *= group.sub_min[half];
    const int value = traits.table ? table[group.codes[i]] : group.codes[i] - zero_point;
    out[i] = scale * value + min;
  }
}

}  // namespace

const std::int8_t* code_table(TensorType type) {
  return type == TensorType::kMXFP4 ? kE2m1Table : kIq4Table;
}

void load_groups(const StoredFormat& format, const std::byte* row, std::int64_t first,
                 std::span<StoredGroup> groups) {
  switch (format.type) {
    case TensorType::kQ4_0:
      return load_run<load_q4_0>(format, row, first, groups);
    case TensorType::kQ4_1:
      return load_run<load_q4_1>(format, row, first, groups);
    case TensorType::kQ5_0:
      return load_run<load_q5_0>(format, row, first, groups);
    case TensorType::kQ5_1:
      return load_run<load_q5_1>(format, row, first, groups);
    case TensorType::kQ2_K:
      return load_run<load_q2_k>(format, row, first, groups);
    case TensorType::kQ3_K:
      return load_run<load_q3_k>(format, row, first, groups);
    case TensorType::kQ4_K:
      return load_run<load_q4_k>(format, row, first, groups);
    case TensorType::kQ5_K:
      return load_run<load_q5_k>(format, row, first, groups);
    case TensorType::kQ6_K:
      return load_run<load_q6_k>(format, row, first, groups);
    case TensorType::kIQ4_NL:
      return load_run<load_iq4_nl>(format, row, first, groups);
    case TensorType::kIQ4_XS:
      return load_run<load_iq4_xs>(format, row, first, groups);
    case TensorType::kMXFP4:
      return load_run<load_mxfp4>(format, row, first, groups);
    default:
      INVARIANT(format.type == TensorType::kQ8_0) << model::to_string(format.type);
      return load_run<load_q8_0>(format, row, first, groups);
  }
}

void decode_row(const StoredFormat& format, const std::byte* row, std::int64_t skip,
                std::int64_t cols, double* out) {
  if (is_quantized(format.form)) {
    StoredGroup group;
    for (std::int64_t g = 0; g < cols / kGroupSize; ++g) {
      load_groups(format, row, skip / kGroupSize + g, std::span(&group, 1));
      decode_group(format, group, out + g * kGroupSize);
    }
    return;
  }
  for (std::int64_t k = 0; k < cols; ++k) {
    const std::byte* p = row + (skip + k) * format.block_bytes;
    switch (format.form) {
      case WeightForm::kF16:
        out[k] = f32_from_f16(half_at(p));
        break;
      case WeightForm::kBF16:
        out[k] = f32_from_bf16(half_at(p));
        break;
      default:
        out[k] = load_as<float>(p);
    }
  }
}

}  // namespace brigade::kernels
