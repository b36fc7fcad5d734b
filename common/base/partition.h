// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace brigade {

/// Half-open interval [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
  [[nodiscard]] bool contains(std::int64_t i) const { return i >= begin && i < end; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Who holds what: one half-open interval a rank, in rank order, without gap or overlap. Never
/// `size / tp`: shares may differ.
///
///     size 9, unit 1, 2 ranks:   rank 0 [0, 5)   rank 1 [5, 9)
using Partition = std::vector<Range>;

/// Splits [0, size) over `num_ranks` in whole multiples of `unit` (the last share takes a ragged
/// rest), as evenly as that allows, larger shares first. A rank may get an empty share when there
/// are fewer units than ranks.
[[nodiscard]] Partition split_evenly(std::int64_t size, std::int64_t num_ranks,
                                     std::int64_t unit = 1);

/// As split_evenly, with shares proportional to `weights` (one positive number a rank). Every rank
/// gets at least one unit when there are enough. Largest remainder first, ties to the lower rank,
/// so that all callers agree.
[[nodiscard]] Partition split_by_weight(std::int64_t size, const std::vector<double>& weights,
                                        std::int64_t unit = 1);

}  // namespace brigade
