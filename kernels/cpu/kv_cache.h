// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/checks.h"
#include "kernels/cpu/arena.h"
#include "kernels/op.h"

namespace brigade::kernels {

/// [layer][block] pages, so that neighbouring blocks of a layer are read as one stream. A page
/// holds 16 tokens of all heads of the rank:
///     [kv head][head_dim][16 tokens] keys, then [kv head][16 tokens][head_dim] values
class CpuKvCache final : public KvCache {
 public:
  CpuKvCache(const KvShape& shape, std::int64_t num_blocks, std::unique_ptr<Mapping> memory)
      : shape_(shape), num_blocks_(num_blocks), memory_(std::move(memory)) {}

  [[nodiscard]] const KvShape& shape() const override { return shape_; }
  [[nodiscard]] std::int64_t num_blocks() const override { return num_blocks_; }

  [[nodiscard]] std::int64_t element_bytes() const { return shape_.type == KvType::kF16 ? 2 : 4; }
  /// Elements of one head's keys (or values) in a page.
  [[nodiscard]] std::int64_t head_elements() const { return shape_.head_dim * kBlockSize; }
  [[nodiscard]] std::int64_t page_bytes() const {
    return 2 * shape_.num_kv_heads * head_elements() * element_bytes();
  }
  [[nodiscard]] std::byte* layer(std::int64_t i) const {
    return memory_->data() + i * num_blocks_ * page_bytes();
  }

 private:
  KvShape shape_;
  std::int64_t num_blocks_;
  std::unique_ptr<Mapping> memory_;
};

}  // namespace brigade::kernels
