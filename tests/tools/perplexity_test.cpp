// SPDX-License-Identifier: Apache-2.0
#include "tools/perplexity.h"

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::tools {
namespace {

struct Plain {
  std::size_t begin;
  std::size_t first_scored;
  std::size_t end;
  friend bool operator==(const Plain&, const Plain&) = default;
};

std::vector<Plain> plan(std::size_t num_tokens, std::size_t context, std::size_t stride) {
  std::vector<Plain> plain;
  for (const ScoreWindow& window : plan_windows(num_tokens, context, stride))
    plain.push_back({window.begin, window.first_scored, window.end});
  return plain;
}

}  // namespace

TEST_CASE("windows follow one another, score their second half, and leave a rest out") {
  CHECK(plan(1100, 512, 512) == std::vector<Plain>{{0, 257, 512}, {512, 769, 1024}});
  CHECK(plan(1024, 512, 512).size() == 2);
  CHECK(plan(1023, 512, 512).size() == 1);
  CHECK(plan(9, 3, 3) == std::vector<Plain>{{0, 2, 3}, {3, 5, 6}, {6, 8, 9}});
}

TEST_CASE("windows with a stride overlap, and score each token once") {
  CHECK(plan(1000, 512, 256) == std::vector<Plain>{{0, 256, 512}, {256, 512, 768}});
  CHECK(plan(12, 8, 2) == std::vector<Plain>{{0, 6, 8}, {2, 8, 10}, {4, 10, 12}});
}

TEST_CASE("a text shorter than the context is one window") {
  CHECK(plan(100, 512, 512) == std::vector<Plain>{{0, 51, 100}});
  CHECK(plan(3, 512, 2) == std::vector<Plain>{{0, 1, 3}});
}

TEST_CASE("log-probabilities add up to mean, standard error and perplexity") {
  NllSum sum;
  CHECK(sum.standard_error() == 0);
  for (const double logprob : {-1.0, -2.0, -6.0})
    sum.add(logprob);
  CHECK(sum.count() == 3);
  CHECK(sum.mean() == doctest::Approx(3));
  CHECK(sum.perplexity() == doctest::Approx(std::exp(3.0)));
  // Variance (4 + 1 + 9) / 3, over 2.
  CHECK(sum.standard_error() == doctest::Approx(std::sqrt(14.0 / 6)));
}

}  // namespace brigade::tools
