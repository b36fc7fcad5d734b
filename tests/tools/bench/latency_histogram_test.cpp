// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/latency_histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "common/base/random.h"

namespace brigade::tools {

TEST_CASE("percentiles of values over six decades are within half a percent of the sorted ones") {
  LatencyHistogram histogram;
  std::vector<double> values;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    values.push_back(std::pow(10.0, -5 + 6 * random_uniform(1, i)));
    histogram.add(values.back());
  }
  std::ranges::sort(values);
  for (const double q : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999}) {
    CAPTURE(q);
    const double exact = values[static_cast<std::size_t>(std::ceil(q * 5000)) - 1];
    // Below 256 us a bucket is a microsecond.
    CHECK(std::abs(histogram.percentile(q) - exact) <= std::max(0.005 * exact, 1e-6));
  }
  CHECK(histogram.percentile(1) == values.back());
  CHECK(histogram.max() == values.back());
  CHECK(histogram.min() == values.front());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 5000;
  CHECK(std::abs(histogram.mean() - mean) < 1e-9);
}

TEST_CASE("buckets hold each value once, and touch where they are neighbours") {
  LatencyHistogram histogram;
  // 255 us to 260 us cross from steps of one microsecond to steps of two.
  for (int micros = 255; micros <= 260; ++micros)
    histogram.add(micros * 1e-6 + 1e-8);
  double last_high = 0;
  std::uint64_t count = 0;
  for (const LatencyHistogram::Bucket& bucket : histogram.buckets()) {
    CHECK(bucket.low_s < bucket.high_s);
    if (last_high > 0) CHECK(bucket.low_s == doctest::Approx(last_high));
    last_high = bucket.high_s;
    count += bucket.count;
  }
  CHECK(count == 6);
}

TEST_CASE("no values have no percentile, no mean and no bucket") {
  const LatencyHistogram histogram;
  CHECK(histogram.percentile(0.5) == 0);
  CHECK(histogram.mean() == 0);
  CHECK(histogram.buckets().empty());
}

TEST_CASE("what is longer than any bucket counts in the last one, with its true maximum") {
  LatencyHistogram histogram;
  histogram.add(1e9);
  histogram.add(1);
  CHECK(histogram.max() == 1e9);
  CHECK(histogram.count() == 2);
  CHECK(histogram.percentile(0.5) == doctest::Approx(1).epsilon(0.005));
}

TEST_CASE("bins have everything, the ends with what is beyond them") {
  LatencyHistogram histogram;
  for (const double value : {0.001, 0.011, 0.019, 0.025, 0.5})
    histogram.add(value);
  CHECK(histogram.binned(0.01, 0.03, 2, /*logarithmic=*/false) == std::vector<std::uint64_t>{3, 2});
  CHECK(histogram.binned(0.001, 1, 3, /*logarithmic=*/true) == std::vector<std::uint64_t>{1, 3, 1});
}

}  // namespace brigade::tools
