// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/lengths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace brigade::tools {
namespace {

std::vector<double> draw_many(const char* text, std::size_t count = 20'000) {
  const Result<Lengths> lengths = Lengths::parse(text);
  REQUIRE(lengths.ok());
  std::vector<double> drawn;
  for (std::size_t i = 0; i < count; ++i)
    drawn.push_back(lengths->draw(/*seed=*/7, i));
  return drawn;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values)
    sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

TEST_CASE("a number is always that length, a range every length in it about as often") {
  CHECK(draw_many("17", 10) == std::vector<double>(10, 17));
  const auto drawn = draw_many("3..6");
  CHECK(std::set<double>(drawn.begin(), drawn.end()) == std::set<double>{3, 4, 5, 6});
  for (const double length : {3, 4, 5, 6}) {
    // Four deviations of a binomial of 20,000 and 1/4 are 245.
    CHECK(std::abs(static_cast<double>(std::ranges::count(drawn, length)) - 5000) < 245);
  }
}

TEST_CASE("normal and lognormal lengths have the mean and deviation that are asked for") {
  const auto normal = draw_many("normal:200,20");
  CHECK(std::abs(mean_of(normal) - 200) < 1);
  CHECK(std::abs(deviation_of(normal) - 20) < 0.8);
  const auto lognormal = draw_many("lognormal:200,100");
  CHECK(std::abs(mean_of(lognormal) - 200) < 4);
  CHECK(std::abs(deviation_of(lognormal) - 100) < 8);
  // Skewed: the median of a lognormal is below its mean.
  CHECK(std::ranges::count_if(lognormal, [](double length) { return length < 200; }) > 11'000);
}

TEST_CASE("bounds hold, and without them no length is below one") {
  for (const double length : draw_many("normal:100,80,50..120"))
    CHECK((length >= 50 && length <= 120));
  CHECK(std::ranges::min(draw_many("normal:2,10")) == 1);
}

TEST_CASE("what is no distribution is refused with what would be one") {
  for (const char* text : {"", "0", "-3", "5..", "..5", "9..3", "1..2..3", "12x", "1.5", "2000000",
                           "uniform:1,2", "normal:", "normal:5", "normal:0.5,1", "normal:5,-1",
                           "normal:nan,1", "normal:5,1,2..", "lognormal:5,1,9..3"}) {
    CAPTURE(text);
    const Result<Lengths> lengths = Lengths::parse(text);
    REQUIRE_FALSE(lengths.ok());
    CHECK(lengths.status().message().find("lognormal:256,200,16..2048") != std::string::npos);
  }
}

}  // namespace brigade::tools
