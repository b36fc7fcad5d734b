// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "common/base/random.h"
#include "tests/shard_worker/model/plain_sampler.h"
#include "tests/support/thread_group.h"

namespace brigade::worker {
namespace {

using test::PlainResult;
using test::random_logits;
constexpr float kInf = std::numeric_limits<float>::infinity();

wire::SequenceAdmit with(wire::SequenceAdmit params, wire::SamplingControls controls) {
  params.controls = std::make_shared<wire::SamplingControls>(std::move(controls));
  return params;
}

/// A sampler on each of `tp_size` ranks, as a step would call them.
class Ranks {
 public:
  Ranks(std::int64_t vocab_size, int tp_size) : groups_(test::make_thread_group(tp_size)) {
    vocab_ = split_evenly(vocab_size, tp_size);
    for (int rank = 0; rank < tp_size; ++rank)
      samplers_.emplace_back(vocab_, rank);
  }

  void admit(const wire::SequenceAdmit& params) {
    StepInputs inputs;
    inputs.admitted = {&params};
    for (Sampler& sampler : samplers_)
      sampler.admit(inputs);
  }

  std::vector<ScoredToken> score(const std::vector<ScoreRow>& rows,
                                 const std::vector<std::vector<float>>& logits) {
    return score(rows, logits, /*from_sums=*/false);
  }
  /// As score, from sums alone.
  std::vector<ScoredToken> score_prompt(const std::vector<ScoreRow>& rows,
                                        const std::vector<std::vector<float>>& logits) {
    return score(rows, logits, /*from_sums=*/true);
  }

  ScoredToken sample(const std::vector<float>& logits, const wire::SequenceAdmit& params,
                     std::uint32_t position = 9) {
    return score({{.seq = params.seq, .position = position, .sample = true, .params = &params}},
                 {logits})[0];
  }

 private:
  std::vector<ScoredToken> score(const std::vector<ScoreRow>& rows,
                                 const std::vector<std::vector<float>>& logits, bool from_sums) {
    std::vector<std::vector<ScoredToken>> scored(samplers_.size());
    std::vector<Status> status(samplers_.size());
    const auto run = [&](std::size_t rank) {
      const Range share = vocab_[rank];
      std::vector<float> own;
      for (const std::vector<float>& row : logits)
        own.insert(own.end(), row.begin() + share.begin, row.begin() + share.end);
      const auto count = static_cast<std::int64_t>(rows.size());
      const kernels::Matrix part{own.data(), count, share.size(), share.size()};
      std::vector<kernels::LogitSum> sums(rows.size());
      kernels::make_reference_ops(kernels::ActivationMode::kFloat)->log_sum(part, sums);
      const TimePoint deadline = Clock::now() + std::chrono::minutes(1);
      for (std::size_t i = 0; from_sums && i < rows.size(); ++i) {
        if (share.contains(rows[i].target)) {
          sums[i].target = logits[i][static_cast<std::size_t>(rows[i].target)];
        }
      }
      status[rank] =
          from_sums
              ? samplers_[rank].score(rows, sums, *groups_[rank], deadline, scored[rank])
              : samplers_[rank].sample(rows, part, sums, *groups_[rank], deadline, scored[rank]);
    };
    std::vector<std::thread> threads;
    for (std::size_t rank = 1; rank < samplers_.size(); ++rank)
      threads.emplace_back(run, rank);
    run(0);
    for (std::thread& thread : threads)
      thread.join();
    for (std::size_t rank = 0; rank < samplers_.size(); ++rank) {
      REQUIRE_MESSAGE(status[rank].ok(), status[rank].message());
      REQUIRE(scored[rank].size() == (rank == 0 ? rows.size() : 0));
    }
    return scored[0];
  }

  std::vector<std::unique_ptr<Collective>> groups_;
  Partition vocab_;
  std::vector<Sampler> samplers_;
};

ScoredToken score(const std::vector<float>& logits, const wire::SequenceAdmit& params,
                  std::uint32_t position = 9, int tp_size = 1) {
  Ranks ranks(static_cast<std::int64_t>(logits.size()), tp_size);
  ranks.admit(params);
  return ranks.sample(logits, params, position);
}

std::int32_t sampled(const std::vector<float>& logits, const wire::SequenceAdmit& params,
                     std::uint32_t position = 9) {
  const ScoredToken token = score(logits, params, position);
  REQUIRE(token.fault == 0);
  return token.token;
}

}  // namespace

TEST_CASE("greedy takes the lowest id among equal largest logits, whatever the ranks") {
  CHECK(sampled({1, 3, 2, 3}, {}) == 1);
  CHECK(sampled({-5, -5}, {}) == 0);
  std::vector<float> logits = random_logits(1000, 1);
  logits[777] = logits[333] = 100;
  for (int tp_size : {1, 2, 3})
    CHECK(score(logits, {}, 9, tp_size).token == 333);
}

TEST_CASE("a draw is the inverse of the cumulative distribution, whatever cuts and ranks") {
  constexpr std::int64_t kVocab = 3000;
  const std::vector<float> logits = random_logits(kVocab, 3);
  Ranks one(kVocab, 1);
  Ranks three(kVocab, 3);
  for (float temperature : {0.01F, 0.7F, 1.0F, 5.0F, 1000.0F}) {
    for (std::int32_t top_k : {0, 1, 50, 1000, 10'000}) {
      for (float top_p : {1e-6F, 0.5F, 0.95F, 1.0F}) {
        for (std::uint32_t position = 0; position < 4; ++position) {
          const wire::SequenceAdmit params{
              .seed = 11, .temperature = temperature, .top_p = top_p, .top_k = top_k};
          const std::int32_t want = test::plain_sample(logits, params, {}, position).token;
          CAPTURE(temperature);
          CAPTURE(top_k);
          CAPTURE(top_p);
          CHECK(one.sample(logits, params, position).token == want);
          CHECK(three.sample(logits, params, position).token == want);
        }
      }
    }
  }
}

TEST_CASE("every control together draws what the plain reference draws") {
  constexpr std::int64_t kVocab = 700;
  Ranks one(kVocab, 1);
  Ranks two(kVocab, 2);
  for (std::uint64_t trial = 0; trial < 400; ++trial) {
    const test::RandomCase drawn(trial, kVocab);
    const std::vector<float> logits = random_logits(kVocab, trial);
    const wire::SequenceAdmit params = with(drawn.params, drawn.controls);
    const PlainResult want =
        test::plain_sample(logits, params, drawn.controls.output_tokens, drawn.position);
    CAPTURE(trial);
    for (Ranks* ranks : {&one, &two}) {
      ranks->admit(params);
      const ScoredToken got = ranks->sample(logits, params, drawn.position);
      REQUIRE(got.fault == (want.token < 0 ? wire::kNothingAllowed : 0));
      if (want.token < 0) continue;
      CHECK(got.token == want.token);
      CHECK(got.logprob == doctest::Approx(want.logprob).epsilon(1e-5));
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

TEST_CASE("draws follow the probabilities by a chi-square test, for each kind of cut") {
  const std::vector<float> logits = random_logits(12, 5, /*spread=*/2);
  const std::pair<const char*, wire::SequenceAdmit> cases[] = {
      {"plain", {.temperature = 1}},
      {"hot", {.temperature = 2}},
      {"top_k", {.temperature = 1, .top_k = 5}},
      {"top_p", {.temperature = 1, .top_p = 0.8F}},
      {"min_p", with({.temperature = 1}, {.min_p = 0.2F})},
      {"typical_p", with({.temperature = 1}, {.typical_p = 0.7F})},
      {"penalties", with({.temperature = 1}, {.repetition_penalty = 1.5F,
                                              .frequency_penalty = 0.5F,
                                              .prompt_tokens = {1, 2},
                                              .output_tokens = {3, 3, 4}})},
  };
  for (auto [name, params] : cases) {
    CAPTURE(name);
    const std::vector<std::int32_t> output =
        params.controls ? params.controls->output_tokens : std::vector<std::int32_t>();
    const std::vector<double> want = test::plain_distribution(logits, params, output, 0);
    constexpr int kDraws = 20'000;
    std::vector<int> counts(logits.size());
    for (int i = 0; i < kDraws; ++i) {
      params.seed = static_cast<std::uint64_t>(i);
      ++counts[static_cast<std::size_t>(sampled(logits, params))];
    }
    double chi_square = 0;
    int degrees = -1;
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (want[i] == 0) {
        CHECK(counts[i] == 0);
        continue;
      }
      ++degrees;
      chi_square += std::pow(counts[i] - kDraws * want[i], 2) / (kDraws * want[i]);
    }
    // Above mean + 5 standard deviations by chance once in a million; the seeds are fixed anyhow.
    CHECK(chi_square < degrees + 5 * std::sqrt(2.0 * degrees));
  }
}

TEST_CASE("a very small temperature is as good as greedy, and no overflow") {
  const std::vector<float> logits = random_logits(500, 8);
  const auto best =
      static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  for (float temperature : {1e-3F, 1e-30F, std::numeric_limits<float>::denorm_min()}) {
    const wire::SequenceAdmit plain{.seed = 1, .temperature = temperature};
    CHECK(sampled(logits, plain) == best);
    CHECK(sampled(logits, with(plain, {.typical_p = 0.5F})) == best);
    CHECK(score(logits, plain, 9, 2).token == best);
  }
}

TEST_CASE("banned tokens are not sampled below their position, and logprobs stay raw") {
  const std::vector<float> logits = {0, 5, 3, 1};
  const wire::SequenceAdmit params{
      .num_logprobs = 2, .banned_until_position = 10, .banned_tokens = {1}};
  for (int tp_size : {1, 2}) {
    const ScoredToken banned = score(logits, params, 9, tp_size);
    CHECK(banned.token == 2);
    CHECK(banned.top_tokens == std::vector<std::int32_t>{1, 2});
    CHECK(banned.logprob == banned.top_logprobs[1]);
    CHECK(score(logits, params, 10, tp_size).token == 1);
  }
  wire::SequenceAdmit warm = params;
  warm.temperature = 1;
  for (warm.seed = 0; warm.seed < 50; ++warm.seed)
    CHECK(sampled(logits, warm, 9) != 1);
}

TEST_CASE("a mask that leaves nothing is a fault of its row alone") {
  const std::vector<float> logits = {0, 5, 3, 1};
  for (float temperature : {0.0F, 1.0F}) {
    for (int tp_size : {1, 2}) {
      const wire::SequenceAdmit all{.seq = 0,
                                    .temperature = temperature,
                                    .banned_until_position = 99,
                                    .banned_tokens = {0, 1, 2, 3}};
      const wire::SequenceAdmit fine{.seq = 1};
      Ranks ranks(4, tp_size);
      const auto scored = ranks.score({{.seq = 0, .position = 9, .sample = true, .params = &all},
                                       {.seq = 1, .position = 9, .sample = true, .params = &fine}},
                                      {logits, logits});
      CHECK(scored[0].fault == wire::kNothingAllowed);
      CHECK(scored[0].token == 0);
      CHECK(scored[1].fault == 0);
      CHECK(scored[1].token == 1);
    }
  }
}

TEST_CASE("logits that are not finite are a fault of their row, on whatever rank they are") {
  for (float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    for (std::size_t at : {0U, 17U, 99U}) {
      for (int tp_size : {1, 3}) {
        std::vector<float> logits = random_logits(100, 2);
        const std::vector<float> good = logits;
        logits[at] = bad;
        const wire::SequenceAdmit params{.num_logprobs = 1, .num_prompt_logprobs = 1};
        Ranks ranks(100, tp_size);
        const auto scored =
            ranks.score({{.seq = 0, .sample = true, .params = &params},
                         {.seq = 1, .sample = false, .target = 3, .params = &params},
                         {.seq = 2, .sample = true, .params = &params}},
                        {logits, logits, good});
        CHECK(scored[0].fault == wire::kLogitsNotFinite);
        CHECK(scored[1].fault == wire::kLogitsNotFinite);
        CHECK(scored[1].token == 3);
        CHECK(scored[2].fault == 0);
      }
    }
  }
}

TEST_CASE("logprobs are the logarithm of the softmax, best first, up to twenty") {
  const std::vector<float> logits = random_logits(300, 4);
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(static_cast<double>(logit));
  for (int tp_size : {1, 3}) {
    const ScoredToken scored = score(logits, {.num_logprobs = 20}, 9, tp_size);
    REQUIRE(scored.top_tokens.size() == 20);
    CHECK(scored.token == scored.top_tokens[0]);
    CHECK(scored.logprob == scored.top_logprobs[0]);
    for (std::size_t i = 0; i < 20; ++i) {
      const double logit = logits[static_cast<std::size_t>(scored.top_tokens[i])];
      CHECK(scored.top_logprobs[i] == doctest::Approx(logit - std::log(sum)).epsilon(1e-6));
      if (i > 0) CHECK(scored.top_logprobs[i] <= scored.top_logprobs[i - 1]);
    }
  }
  CHECK(score(logits, {.num_logprobs = 0}).top_tokens.empty());
  CHECK_FALSE(std::isnan(score(logits, {.num_logprobs = 0}).logprob));
  CHECK(std::isnan(score(logits, {}).logprob));
}

TEST_CASE("a prompt token is scored, not drawn") {
  const wire::SequenceAdmit params{.temperature = 1, .num_prompt_logprobs = 1};
  for (int tp_size : {1, 2}) {
    Ranks ranks(3, tp_size);
    const ScoredToken scored =
        ranks.score({{.seq = 4, .position = 2, .target = 0, .params = &params}}, {{0, 1, 2}})[0];
    CHECK(scored.token == 0);
    CHECK_FALSE(scored.sampled);
    CHECK(scored.seq == 4);
    CHECK(scored.logprob == doctest::Approx(-2.4076059).epsilon(1e-6));
    CHECK(scored.top_tokens == std::vector<std::int32_t>{2});
  }
}

TEST_CASE("a prompt token is scored from sums alone as from its logits, and faults the same") {
  constexpr std::size_t kRows = 70;  // more than are gathered at once
  const wire::SequenceAdmit params{.num_prompt_logprobs = 0};
  std::vector<ScoreRow> rows;
  std::vector<std::vector<float>> logits;
  for (std::uint32_t i = 0; i < kRows; ++i) {
    rows.push_back({.seq = i, .position = i, .target = static_cast<std::int32_t>(4 * i)});
    rows.back().params = &params;
    logits.push_back(random_logits(300, i));
  }
  logits[40][7] = kInf;
  for (int tp_size : {1, 2, 3}) {
    Ranks ranks(300, tp_size);
    const auto scored = ranks.score_prompt(rows, logits);
    REQUIRE(scored.size() == kRows);
    for (std::size_t i = 0; i < kRows; ++i) {
      const ScoredToken expected = ranks.score({rows[i]}, {logits[i]})[0];
      CHECK(scored[i].seq == expected.seq);
      CHECK(scored[i].token == expected.token);
      CHECK(scored[i].fault == expected.fault);
      CHECK(scored[i].fault == (i == 40 ? wire::kLogitsNotFinite : 0));
      CHECK((scored[i].logprob == expected.logprob || i == 40));
    }
  }
}

TEST_CASE("a sequence with penalties goes on the same from any token of its output") {
  constexpr std::int64_t kVocab = 300;
  constexpr std::uint32_t kPrompt = 5;
  const std::vector<float> logits = random_logits(kVocab, 21, /*spread=*/3);
  const wire::SequenceAdmit plain{.seed = 77, .temperature = 0.9F, .num_logprobs = 0};
  wire::SamplingControls controls{.repetition_penalty = 1.3F,
                                  .presence_penalty = 0.4F,
                                  .frequency_penalty = 0.7F,
                                  .bias = {{12, 1.5F}},
                                  .bad_words = {{7, 8, 9}, {3}},
                                  .prompt_tokens = {1, 2, 250}};
  std::vector<std::int32_t> output;
  std::vector<float> logprobs;
  for (int tp_size : {1, 2}) {
    for (std::size_t from : {0U, 1U, 13U, 39U}) {
      controls.output_tokens.assign(
          output.begin(),
          output.begin() + static_cast<std::ptrdiff_t>(std::min(from, output.size())));
      const wire::SequenceAdmit params = with(plain, controls);
      Ranks ranks(kVocab, tp_size);
      ranks.admit(params);
      for (std::size_t i = controls.output_tokens.size(); i < 40; ++i) {
        const ScoredToken token =
            ranks.sample(logits, params, kPrompt + static_cast<std::uint32_t>(i));
        if (i == output.size()) {
          output.push_back(token.token);
          logprobs.push_back(token.logprob);
        }
        CHECK(token.token == output[i]);
        if (tp_size == 1) CHECK(token.logprob == logprobs[i]);
      }
    }
  }
  // The penalties have spread them: without, the same seeds repeat more.
  std::vector<std::int32_t> distinct = output;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  CHECK(distinct.size() > 30);
}

TEST_CASE("the last token of a bad word is not drawn behind its others, and free elsewhere") {
  std::vector<float> logits(10, 0.0F);
  logits[4] = 9;
  logits[5] = 8;
  for (int tp_size : {1, 3}) {
    const wire::SequenceAdmit params = with({}, {.bad_words = {{4, 4}, {6}}, .output_tokens = {}});
    Ranks ranks(10, tp_size);
    ranks.admit(params);
    CHECK(ranks.sample(logits, params).token == 4);
    CHECK(ranks.sample(logits, params).token == 5);
    CHECK(ranks.sample(logits, params).token == 4);
    const wire::SequenceAdmit single = with({}, {.bad_words = {{4}}});
    ranks.admit(single);
    CHECK(ranks.sample(logits, single).token == 5);
  }
}

TEST_CASE("a slot that is admitted anew has forgotten its last sequence") {
  const std::vector<float> logits = {3, 2, 1};
  Ranks ranks(3, 1);
  const wire::SequenceAdmit biased = with({}, {.bias = {{2, 10}}});
  ranks.admit(biased);
  CHECK(ranks.sample(logits, biased).token == 2);
  const wire::SequenceAdmit other = with({}, {.allowed_tokens = {1}});
  ranks.admit(other);
  CHECK(ranks.sample(logits, other).token == 1);
  const wire::SequenceAdmit plain;
  ranks.admit(plain);
  CHECK(ranks.sample(logits, plain).token == 0);
}

}  // namespace brigade::worker
