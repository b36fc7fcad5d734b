// SPDX-License-Identifier: Apache-2.0
#include "common/base/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/check.h"

namespace brigade {
namespace {

/// Intervals of `shares[i]` units each, cut off at `size`.
Partition intervals(const std::vector<std::int64_t>& shares, std::int64_t unit, std::int64_t size) {
  Partition parts;
  std::int64_t begin = 0;
  for (std::int64_t share : shares) {
    const std::int64_t end = std::min(size, begin + share * unit);
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

}  // namespace

Partition split_evenly(std::int64_t size, std::int64_t num_ranks, std::int64_t unit) {
  return split_by_weight(size, std::vector<double>(static_cast<std::size_t>(num_ranks), 1.0), unit);
}

Partition split_by_weight(std::int64_t size, const std::vector<double>& weights,
                          std::int64_t unit) {
  INVARIANT(size >= 0 && unit > 0 && !weights.empty()) << size << ' ' << unit;
  const auto ranks = weights.size();
  const std::int64_t units = (size + unit - 1) / unit;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t floor_share = units >= static_cast<std::int64_t>(ranks) ? 1 : 0;
  std::vector<std::int64_t> shares(ranks);
  std::vector<double> wanted(ranks);
  std::int64_t given = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    INVARIANT(weights[i] > 0) << "weight of rank " << i << " is " << weights[i];
    wanted[i] = static_cast<double>(units) * weights[i] / total;
    shares[i] = std::max(floor_share, static_cast<std::int64_t>(std::floor(wanted[i])));
    given += shares[i];
  }
  auto need = [&](std::size_t i) { return wanted[i] - static_cast<double>(shares[i]); };
  for (; given < units; ++given) {
    std::size_t most = 0;
    for (std::size_t i = 1; i < ranks; ++i) {
      if (need(i) > need(most)) most = i;
    }
    ++shares[most];
  }
  for (; given > units; --given) {  // the floor of one unit gave out too many
    std::size_t least = ranks;
    for (std::size_t i = 0; i < ranks; ++i) {
      if (shares[i] > floor_share && (least == ranks || need(i) < need(least))) least = i;
    }
    --shares[least];
  }
  return intervals(shares, unit, size);
}

}  // namespace brigade
