// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace brigade::tools {

/// Latencies in fixed memory: buckets of a microsecond up to 256 of them, above that of 1/128 of
/// their value, so a percentile is within 0.4 %. Minimum, maximum and mean are exact.
class LatencyHistogram final {
 public:
  struct Bucket {
    double low_s;
    double high_s;
    std::uint64_t count;
  };

  void add(double seconds, std::uint64_t count = 1);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] double min() const { return min_s_; }
  [[nodiscard]] double max() const { return max_s_; }
  [[nodiscard]] double mean() const;
  /// The smallest value that a part `q` (0 to 1) of all are at or below; 0 without any.
  [[nodiscard]] double percentile(double q) const;
  /// Those that are not empty, rising.
  [[nodiscard]] std::vector<Bucket> buckets() const;
  /// How many are in each of `num_bins` bins from `low` to `high`, equally wide, or of equal ratios
  /// when `logarithmic`; what is below is in the first, what is above in the last.
  [[nodiscard]] std::vector<std::uint64_t> binned(double low, double high, std::size_t num_bins,
                                                  bool logarithmic) const;

 private:
  std::vector<std::uint64_t> counts_;  ///< as many as have been needed
  std::uint64_t count_ = 0;
  double sum_s_ = 0;
  double min_s_ = 0;
  double max_s_ = 0;
};

}  // namespace brigade::tools
