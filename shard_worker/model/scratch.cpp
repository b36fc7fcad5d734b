// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/scratch.h"

#include <algorithm>
#include <cstdlib>

#include "common/base/check.h"

namespace brigade::worker {

AlignedFloats::AlignedFloats(std::int64_t size) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(float);
  const std::size_t rounded =
      std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  data_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, rounded)));
  INVARIANT(data_ != nullptr) << "no memory for " << rounded << " bytes of scratch";
}

void AlignedFloats::Free::operator()(float* p) const {
  std::free(p);
}

}  // namespace brigade::worker
