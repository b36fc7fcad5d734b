// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace brigade {

/// Upper edges of time in seconds, from a millisecond to most of an hour: fine where tokens are
/// waited for, coarse where requests are.
inline constexpr std::array<double, 25> kSecondsEdges = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
    0.75,  1,      2.5,   5,    7.5,   10,   20,    40,  80,   160, 640, 2560};
/// Upper edges of numbers of tokens.
inline constexpr std::array<double, 16> kTokenEdges = {
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10'000, 20'000, 50'000, 100'000};

/// How many values were how large. A plain value: one thread counts, others get copies.
class Histogram final {
 public:
  /// `edges`: upper edges, rising, in static storage.
  explicit Histogram(std::span<const double> edges) : edges_(edges), counts_(edges.size() + 1) {}

  void observe(double value) {
    std::size_t bucket = 0;
    while (bucket < edges_.size() && value > edges_[bucket])
      ++bucket;
    ++counts_[bucket];
    sum_ += value;
  }

  [[nodiscard]] std::span<const double> edges() const { return edges_; }
  /// [edges + 1]: values at most as large as that edge and above the one before; the last above
  /// all.
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }
  [[nodiscard]] double sum() const { return sum_; }
  /// Nothing while nothing has been observed.
  [[nodiscard]] std::optional<double> mean() const {
    const auto count = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
    return count == 0 ? std::nullopt : std::optional(sum_ / static_cast<double>(count));
  }

 private:
  std::span<const double> edges_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

}  // namespace brigade
