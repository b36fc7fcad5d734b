// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace brigade::model {

/// ggml's type ids, as stored. Only those named here can be read; others are refused by number and
/// name.
enum class TensorType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39
};

[[nodiscard]] std::string_view to_string(TensorType type);
/// Weights a block of the type holds, and its bytes (F32: 1 and 4; Q4_1: 32 and 20; Q4_K: 256 and
/// 144).
[[nodiscard]] std::int64_t block_elements(TensorType type);
[[nodiscard]] std::int64_t block_bytes(TensorType type);

/// Bits that a weight of the type takes in a worker's memory, scales and minima counted: the CPU
/// kernels hold some types wider than the file does.
[[nodiscard]] double bits_in_memory(TensorType type);

/// The type of a stored id, when it is one that can be read.
[[nodiscard]] std::optional<TensorType> readable_type(std::uint32_t id);

/// ggml's name of any type id with its number, for messages: `IQ1_M (29)`, `unknown type (255)`.
[[nodiscard]] std::string describe_type(std::uint32_t id);

/// The names of all types that can be read, for messages.
[[nodiscard]] std::string readable_types();

}  // namespace brigade::model
