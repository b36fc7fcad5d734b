// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gguf_builder.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace brigade::test {
namespace {

using model::TensorType;

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_string(std::string& out, std::string_view text) {
  append<std::uint64_t>(out, text.size());
  out += text;
}

/// IEEE half, round to nearest even; test values stay in its normal or subnormal range.
std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const float magnitude = std::fabs(value);
  if (magnitude < 0x1p-14F) {
    return static_cast<std::uint16_t>(sign | static_cast<int>(std::nearbyint(magnitude * 0x1p24F)));
  }
  const std::uint32_t rest = std::bit_cast<std::uint32_t>(magnitude) - (112U << 23U);
  const std::uint32_t rounded = rest + 0xfffU + ((rest >> 13U) & 1U);
  INVARIANT(rounded < (31U << 23U)) << value << " does not fit a half";
  return static_cast<std::uint16_t>(sign | (rounded >> 13U));
}

float from_f16(std::uint16_t half) {
  const float sign = (half & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = (half >> 10U) & 31U;
  const auto fraction = static_cast<float>(half & 0x3ffU);
  if (exponent == 0) return sign * fraction * 0x1p-24F;
  return sign * std::ldexp(1024.0F + fraction, exponent - 25);
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

void append_q8_0(std::string& out, std::span<const float> group) {
  float peak = 0;
  for (float v : group)
    peak = std::max(peak, std::fabs(v));
  const std::uint16_t scale = to_f16(peak / 127);
  append(out, scale);
  const float inverse = peak > 0 ? 1 / from_f16(scale) : 0;
  for (float v : group) {
    append(out, static_cast<std::int8_t>(std::clamp(std::nearbyint(v * inverse), -127.0F, 127.0F)));
  }
}

void append_q4_1(std::string& out, std::span<const float> group) {
  const auto [low, high] = std::minmax_element(group.begin(), group.end());
  const std::uint16_t scale = to_f16((*high - *low) / 15);
  const std::uint16_t minimum = to_f16(*low);
  append(out, scale);
  append(out, minimum);
  const float step = from_f16(scale);
  const auto quantise = [&](float v) {
    const float q = step > 0 ? std::nearbyint((v - from_f16(minimum)) / step) : 0;
    return static_cast<unsigned>(std::clamp(q, 0.0F, 15.0F));
  };
  for (std::size_t i = 0; i < 16; ++i) {
    append(out, static_cast<std::uint8_t>(quantise(group[i]) | (quantise(group[i + 16]) << 4U)));
  }
}

}  // namespace

std::string encode_tensor(TensorType type, std::span<const float> values) {
  std::string out;
  const auto block = static_cast<std::size_t>(model::block_elements(type));
  INVARIANT(values.size() % block == 0) << values.size() << " values in blocks of " << block;
  for (std::size_t i = 0; i < values.size(); i += block) {
    switch (type) {
      case TensorType::kF32:
        append(out, values[i]);
        break;
      case TensorType::kF16:
        append(out, to_f16(values[i]));
        break;
      case TensorType::kBF16:
        append(out, to_bf16(values[i]));
        break;
      case TensorType::kQ8_0:
        append_q8_0(out, values.subspan(i, block));
        break;
      case TensorType::kQ4_1:
        append_q4_1(out, values.subspan(i, block));
        break;
      default:
        INVARIANT(false) << "values are not rounded to " << model::to_string(type);
    }
  }
  return out;
}

void GgufBuilder::start_key(std::string_view key, std::uint32_t type) {
  ++num_keys_;
  append_string(keys_, key);
  append(keys_, type);
}

GgufBuilder& GgufBuilder::add_u32(std::string_view key, std::uint32_t value) {
  start_key(key, 4);
  append(keys_, value);
  return *this;
}

GgufBuilder& GgufBuilder::add_u64(std::string_view key, std::uint64_t value) {
  start_key(key, 10);
  append(keys_, value);
  return *this;
}

GgufBuilder& GgufBuilder::add_f32(std::string_view key, float value) {
  start_key(key, 6);
  append(keys_, value);
  return *this;
}

GgufBuilder& GgufBuilder::add_bool(std::string_view key, bool value) {
  start_key(key, 7);
  append<std::uint8_t>(keys_, value ? 1 : 0);
  return *this;
}

GgufBuilder& GgufBuilder::add_string(std::string_view key, std::string_view value) {
  start_key(key, 8);
  append_string(keys_, value);
  return *this;
}

GgufBuilder& GgufBuilder::add_strings(std::string_view key,
                                      const std::vector<std::string>& values) {
  start_key(key, 9);
  append<std::uint32_t>(keys_, 8);
  append<std::uint64_t>(keys_, values.size());
  for (const std::string& value : values)
    append_string(keys_, value);
  return *this;
}

GgufBuilder& GgufBuilder::add_i32s(std::string_view key, const std::vector<std::int32_t>& values) {
  start_key(key, 9);
  append<std::uint32_t>(keys_, 5);
  append<std::uint64_t>(keys_, values.size());
  for (std::int32_t value : values)
    append(keys_, value);
  return *this;
}

GgufBuilder& GgufBuilder::add_f32s(std::string_view key, const std::vector<float>& values) {
  start_key(key, 9);
  append<std::uint32_t>(keys_, 6);
  append<std::uint64_t>(keys_, values.size());
  for (float value : values)
    append(keys_, value);
  return *this;
}

GgufBuilder& GgufBuilder::add_raw(std::string_view key, std::uint32_t type,
                                  std::string_view bytes) {
  start_key(key, type);
  keys_ += bytes;
  return *this;
}

GgufBuilder& GgufBuilder::add_tensor(std::string_view name, TensorType type, std::int64_t rows,
                                     std::int64_t cols, std::span<const float> values) {
  std::vector<std::uint64_t> dims = {static_cast<std::uint64_t>(cols)};
  if (rows > 0) dims.push_back(static_cast<std::uint64_t>(rows));
  return add_raw_tensor(name, dims, static_cast<std::uint32_t>(type), encode_tensor(type, values));
}

GgufBuilder& GgufBuilder::add_raw_tensor(std::string_view name,
                                         const std::vector<std::uint64_t>& dims, std::uint32_t type,
                                         std::string data) {
  tensors_.push_back({std::string(name), dims, type, std::move(data)});
  return *this;
}

GgufBuilder& GgufBuilder::set_alignment(std::uint32_t alignment) {
  alignment_ = alignment;
  return add_u32("general.alignment", alignment);
}

std::string GgufBuilder::build() const {
  std::string out = "GGUF";
  append(out, version_);
  append<std::uint64_t>(out, tensors_.size());
  append(out, num_keys_);
  out += keys_;
  const auto aligned = [this](std::uint64_t size) {
    return (size + alignment_ - 1) / alignment_ * alignment_;
  };
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    append_string(out, tensor.name);
    append(out, static_cast<std::uint32_t>(tensor.dims.size()));
    for (std::uint64_t dim : tensor.dims)
      append(out, dim);
    append(out, tensor.type);
    append(out, offset);
    offset = aligned(offset + tensor.data.size());
  }
  for (const Tensor& tensor : tensors_) {
    out.resize(aligned(out.size()), '\0');
    out += tensor.data;
  }
  return out;
}

TempFile::TempFile(std::string_view bytes, std::string_view suffix) {
  static std::atomic<int> counter{0};
  path_ = std::filesystem::temp_directory_path() /
          str_cat("brigade-test-", getpid(), "-", counter++, suffix);
  std::ofstream out(path_, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  INVARIANT(out.good()) << "cannot write " << path_;
}

TempFile::~TempFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace brigade::test
