// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "common/base/random.h"

namespace brigade::worker {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t size, std::uint64_t seed) {
  std::vector<float> logits(size);
  for (std::size_t i = 0; i < size; ++i) {
    logits[i] = static_cast<float>(16 * random_uniform(seed, i) - 8);
  }
  return logits;
}

Result<ScoredToken> score(std::vector<float> logits, const wire::SequenceAdmit& params,
                          std::uint32_t position = 9) {
  Sampler sampler(static_cast<std::int64_t>(logits.size()));
  return sampler.score({.position = position, .sample = true, .params = &params}, logits);
}

std::int32_t sampled(const std::vector<float>& logits, const wire::SequenceAdmit& params,
                     std::uint32_t position = 9) {
  const auto result = score(logits, params, position);
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  return result->token;
}

/// What Sampler promises, in the plainest way: sort everything, then cut and draw.
std::int32_t plain_draw(const std::vector<float>& logits, const wire::SequenceAdmit& params,
                        std::uint32_t position) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](std::int32_t i) { return logits[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return at(a) > at(b); });
  if (params.top_k > 0) {
    order.resize(std::min(order.size(), static_cast<std::size_t>(params.top_k)));
  }
  std::vector<double> cumulative;
  double sum = 0;
  for (std::int32_t i : order) {
    sum += std::exp((static_cast<double>(at(i)) - at(order[0])) / params.temperature);
    cumulative.push_back(sum);
  }
  std::size_t kept = 0;
  while (kept + 1 < order.size() && cumulative[kept] < params.top_p * sum)
    ++kept;
  const double target = random_uniform(params.seed, position) * cumulative[kept];
  for (std::size_t i = 0; i <= kept; ++i) {
    if (cumulative[i] > target) return order[i];
  }
  return order[kept];
}

}  // namespace

TEST_CASE("greedy takes the lowest id among equal largest logits") {
  CHECK(sampled({1, 3, 2, 3}, {}) == 1);
  CHECK(sampled({-5, -5}, {}) == 0);
  std::vector<float> logits = random_logits(1000, 1);
  logits[777] = logits[333] = 100;
  CHECK(sampled(logits, {}) == 333);
}

TEST_CASE("a draw is the inverse of the cumulative distribution, whatever the cuts") {
  const std::vector<float> logits = random_logits(5000, 3);
  for (float temperature : {0.01F, 0.7F, 1.0F, 5.0F, 1000.0F}) {
    for (std::int32_t top_k : {0, 1, 2, 50, 1000, 10'000}) {
      for (float top_p : {1e-6F, 0.5F, 0.95F, 1.0F}) {
        for (std::uint32_t position = 0; position < 8; ++position) {
          const wire::SequenceAdmit params{
              .seed = 11, .temperature = temperature, .top_p = top_p, .top_k = top_k};
          CHECK(sampled(logits, params, position) == plain_draw(logits, params, position));
        }
      }
    }
  }
}

TEST_CASE("equal probabilities are drawn in the order of their ids") {
  const std::vector<float> logits(4, 2.5F);
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    const auto want = static_cast<std::int32_t>(4 * random_uniform(seed, 9));
    CHECK(sampled(logits, {.seed = seed, .temperature = 1}) == want);
    CHECK(sampled(logits, {.seed = seed, .temperature = 1, .top_k = 1}) == 0);
  }
}

TEST_CASE("draws follow the probabilities") {
  const std::vector<float> logits = {std::log(0.1F), std::log(0.6F), std::log(0.3F)};
  std::map<std::int32_t, int> counts;
  constexpr int kDraws = 20'000;
  Sampler sampler(3);
  const wire::SequenceAdmit params{.seed = 5, .temperature = 1};
  for (std::uint32_t position = 0; position < kDraws; ++position) {
    std::vector<float> row = logits;
    ++counts[sampler.score({.position = position, .sample = true, .params = &params}, row)->token];
  }
  // Five standard deviations of a binomial count.
  for (const auto& [token, p] : std::map<int, double>{{0, 0.1}, {1, 0.6}, {2, 0.3}}) {
    CHECK(std::abs(counts[token] - kDraws * p) < 5 * std::sqrt(kDraws * p * (1 - p)));
  }
}

TEST_CASE("a very small temperature is as good as greedy, and no overflow") {
  const std::vector<float> logits = random_logits(500, 8);
  const auto best =
      static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  for (float temperature : {1e-3F, 1e-30F, std::numeric_limits<float>::denorm_min()}) {
    CHECK(sampled(logits, {.seed = 1, .temperature = temperature}) == best);
  }
}

TEST_CASE("banned tokens are not sampled below their position, and logprobs stay raw") {
  const std::vector<float> logits = {0, 5, 3, 1};
  const wire::SequenceAdmit params{
      .num_logprobs = 2, .banned_until_position = 10, .banned_tokens = {1}};
  const auto banned = score(logits, params, 9);
  REQUIRE(banned.ok());
  CHECK(banned->token == 2);
  CHECK(banned->top_tokens == std::vector<std::int32_t>{1, 2});
  CHECK(banned->logprob == banned->top_logprobs[1]);
  CHECK(sampled(logits, params, 10) == 1);
  wire::SequenceAdmit warm = params;
  warm.temperature = 1;
  for (warm.seed = 0; warm.seed < 50; ++warm.seed)
    CHECK(sampled(logits, warm, 9) != 1);
  wire::SequenceAdmit all = params;
  all.banned_tokens = {0, 1, 2, 3};
  CHECK_FALSE(score(logits, all, 9).ok());
}

TEST_CASE("logprobs are the logarithm of the softmax, best first, up to twenty") {
  const std::vector<float> logits = random_logits(300, 4);
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(static_cast<double>(logit));
  const auto scored = score(logits, {.num_logprobs = 20});
  REQUIRE(scored.ok());
  REQUIRE(scored->top_tokens.size() == 20);
  CHECK(scored->token == scored->top_tokens[0]);
  for (std::size_t i = 0; i < 20; ++i) {
    const double logit = logits[static_cast<std::size_t>(scored->top_tokens[i])];
    CHECK(scored->top_logprobs[i] == doctest::Approx(logit - std::log(sum)).epsilon(1e-6));
    if (i > 0) CHECK(scored->top_logprobs[i] <= scored->top_logprobs[i - 1]);
  }
  CHECK(score(logits, {.num_logprobs = 0})->top_tokens.empty());
  CHECK_FALSE(std::isnan(score(logits, {.num_logprobs = 0})->logprob));
  CHECK(std::isnan(score(logits, {})->logprob));
}

TEST_CASE("a prompt token is scored, not drawn") {
  std::vector<float> logits = {0, 1, 2};
  Sampler sampler(3);
  const wire::SequenceAdmit params{.temperature = 1, .num_prompt_logprobs = 1};
  ScoreRow row{.seq = 4, .position = 2, .target = 0, .params = &params};
  const auto scored = sampler.score(row, logits);
  REQUIRE(scored.ok());
  CHECK(scored->token == 0);
  CHECK_FALSE(scored->sampled);
  CHECK(scored->seq == 4);
  CHECK(scored->logprob == doctest::Approx(-2.4076059).epsilon(1e-6));
  CHECK(scored->top_tokens == std::vector<std::int32_t>{2});
  row.target = 3;
  CHECK_FALSE(sampler.score(row, logits).ok());
}

TEST_CASE("logits that are not finite are an error that names the sequence") {
  for (float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    for (std::size_t at : {0U, 17U, 99U}) {
      std::vector<float> logits = random_logits(100, 2);
      logits[at] = bad;
      const auto result = score(logits, {});
      REQUIRE_FALSE(result.ok());
      CHECK(result.status().code() == StatusCode::kInternal);
    }
  }
}

}  // namespace brigade::worker
