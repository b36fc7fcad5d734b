// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace brigade::tools {
namespace {

constexpr std::uint64_t kMaxMicros = std::uint64_t{1} << 40;  // twelve days
constexpr unsigned kBits = 7;
constexpr std::uint64_t kSteps = 1U << kBits;  // of a doubling
constexpr std::uint64_t kExact = 2 * kSteps;   // below this a bucket is a microsecond

std::size_t index_of(std::uint64_t micros) {
  if (micros < kExact) return micros;
  const auto shift = static_cast<unsigned>(std::bit_width(micros)) - (kBits + 1);
  return kExact + (shift - 1) * kSteps + (micros >> shift) - kSteps;
}

struct Range {
  std::uint64_t low;
  std::uint64_t high;
};
Range micros_of(std::size_t index) {
  if (index < kExact) return {index, index + 1};
  const std::uint64_t shift = (index - kExact) / kSteps + 1;
  const std::uint64_t low = ((index - kExact) % kSteps + kSteps) << shift;
  return {low, low + (std::uint64_t{1} << shift)};
}

}  // namespace

void LatencyHistogram::add(double seconds, std::uint64_t count) {
  if (count == 0) return;
  seconds = std::max(seconds, 0.0);
  const double micros = std::min(seconds * 1e6, static_cast<double>(kMaxMicros));
  const std::size_t index = index_of(static_cast<std::uint64_t>(micros));
  if (index >= counts_.size()) counts_.resize(index + 1);
  counts_[index] += count;
  min_s_ = count_ == 0 ? seconds : std::min(min_s_, seconds);
  max_s_ = std::max(max_s_, seconds);
  sum_s_ += seconds * static_cast<double>(count);
  count_ += count;
}

double LatencyHistogram::mean() const {
  return count_ == 0 ? 0 : sum_s_ / static_cast<double>(count_);
}

double LatencyHistogram::percentile(double q) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(q * static_cast<double>(count_));
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, count_);
  if (rank == count_) return max_s_;
  std::uint64_t seen = 0;
  std::size_t index = 0;
  while ((seen += counts_[index]) < rank)
    ++index;
  const Range range = micros_of(index);
  const double middle = static_cast<double>(range.low + range.high) / 2 * 1e-6;
  return std::clamp(middle, min_s_, max_s_);
}

std::vector<LatencyHistogram::Bucket> LatencyHistogram::buckets() const {
  std::vector<Bucket> out;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    const Range range = micros_of(i);
    out.push_back({.low_s = static_cast<double>(range.low) * 1e-6,
                   .high_s = static_cast<double>(range.high) * 1e-6,
                   .count = counts_[i]});
  }
  return out;
}

std::vector<std::uint64_t> LatencyHistogram::binned(double low, double high, std::size_t num_bins,
                                                    bool logarithmic) const {
  std::vector<std::uint64_t> bins(num_bins);
  for (const Bucket& bucket : buckets()) {
    const double value = (bucket.low_s + bucket.high_s) / 2;
    const double part =
        logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    const double bin = std::isfinite(part) ? part * static_cast<double>(num_bins) : 0;
    const double last = static_cast<double>(num_bins - 1);
    bins[static_cast<std::size_t>(std::clamp(std::floor(bin), 0.0, last))] += bucket.count;
  }
  return bins;
}

}  // namespace brigade::tools
