// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace brigade::kernels {

/// Memory that only grows, aligned to 64; its content is lost when it does.
class ScratchBuffer final {
 public:
  [[nodiscard]] std::byte* bytes(std::int64_t size) {
    const auto lines = static_cast<std::size_t>((size + kLine - 1) / kLine);
    if (lines > lines_.size()) lines_ = std::vector<Line>(lines);
    return lines_.data()->bytes;
  }
  [[nodiscard]] float* floats(std::int64_t size) {
    return reinterpret_cast<float*>(bytes(size * static_cast<std::int64_t>(sizeof(float))));
  }

 private:
  static constexpr std::int64_t kLine = 64;
  struct alignas(kLine) Line {
    std::byte bytes[kLine];
  };
  std::vector<Line> lines_;
};

}  // namespace brigade::kernels
