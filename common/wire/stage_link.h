// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

/// What shard workers say to each other over stage links.
namespace brigade::wire {

enum class ElementType : std::uint8_t { kF32 = 0, kBF16 = 1, kF16 = 2 };

[[nodiscard]] constexpr std::uint32_t element_bytes(ElementType type) {
  return type == ElementType::kF32 ? 4 : 2;
}

inline constexpr std::uint32_t kMaxStageRows = 1U << 20;
inline constexpr std::uint32_t kMaxHiddenSize = 1U << 20;
/// A payload larger than this is refused when its header is decoded, before memory is taken for it.
inline constexpr std::uint64_t kMaxPayloadBytes = 1ULL << 30;

/// Goes before one raw frame: row-major [num_rows, hidden_size] of `element`, rows in the order of
/// the command's tokens. Frames of a link message: header, payload.
struct ActivationHeader {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint32_t lane = 0;
  std::uint64_t plan_hash = 0;
  std::uint32_t from_stage = 0;
  std::uint32_t from_rank = 0;  ///< tp_rank in from_stage
  std::uint32_t num_rows = 0;
  std::uint32_t hidden_size = 0;
  ElementType element = ElementType::kF32;

  [[nodiscard]] std::uint64_t payload_bytes() const {
    return std::uint64_t{num_rows} * hidden_size * element_bytes(element);
  }
};

/// From the last stage to the first: the samples of a step, for steps that take their token from
/// the last sample (kTokenFromSample). One frame.
struct SampledTokens {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint32_t lane = 0;
  std::uint64_t plan_hash = 0;
  std::vector<std::uint32_t> seq;   ///< slot
  std::vector<std::int32_t> token;  ///< beside `seq`
};

using StageLinkMessage = std::variant<ActivationHeader, SampledTokens>;

}  // namespace brigade::wire
