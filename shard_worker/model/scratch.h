// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/op.h"

namespace brigade::worker {

/// Floats at a multiple of 64 bytes, not initialised.
class AlignedFloats final {
 public:
  explicit AlignedFloats(std::int64_t size);
  [[nodiscard]] float* data() const { return data_.get(); }
  /// The first rows x cols of them.
  [[nodiscard]] kernels::Matrix view(std::int64_t rows, std::int64_t cols) const {
    return {data_.get(), rows, cols, cols};
  }

 private:
  struct Free {
    void operator()(float* p) const;
  };
  std::unique_ptr<float[], Free> data_;
};

}  // namespace brigade::worker
