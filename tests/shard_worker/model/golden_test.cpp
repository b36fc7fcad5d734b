// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/base/strings.h"
#include "tests/support/engine_grid.h"
#include "tests/support/golden.h"
#include "tests/support/tiny_model.h"

/// The real model against a float64 run of it (tests/golden), always teacher-forced: every position
/// sees the reference's own tokens before it, so that one near-tie does not spoil what follows.
namespace brigade::worker {
namespace {

using test::EngineGrid;
using test::GoldenPrompt;
using test::GridOptions;
using test::Piece;

using Logits = std::vector<float>;  ///< [vocab_size]
using Rows = std::vector<Logits>;   ///< [generated position]
using Hashes = std::vector<std::uint64_t>;

std::uint64_t hash_bits(std::span<const float> values) {
  std::uint64_t hash = 1;
  for (float value : values)
    hash = mix64(hash ^ std::bit_cast<std::uint32_t>(value));
  return hash;
}

/// How a prompt and the reference's tokens are fed.
struct Feed {
  std::size_t chunk = 512;  ///< tokens a step
  std::uint32_t mates = 0;  ///< other sequences in every step, of other lengths
};

/// Hands the logits that predict greedy_ids[i] to `take(i, logits)`, for all i.
template <typename Take>
void force(EngineGrid& grid, const GoldenPrompt& prompt, const Feed& feed, Take&& take) {
  const std::size_t prompt_size = prompt.prompt_ids.size();
  grid.observe_logits([&](const ScoreRow& row, std::span<const float> logits) {
    if (row.seq == 0) take(row.position - prompt_size, logits);
  });
  std::vector<std::int32_t> tokens = prompt.prompt_ids;
  tokens.insert(tokens.end(), prompt.greedy_ids.begin(), prompt.greedy_ids.end());
  const std::size_t num_fed = tokens.size() - 1;  // the last one is only predicted
  for (std::size_t at = 0; at < num_fed;) {
    // The prompt's other rows need no logits: a chunk ends before its last token, from where all
    // rows are scored.
    const std::size_t limit = at < prompt_size - 1 ? prompt_size - 1 : num_fed;
    const std::size_t end = std::min(at + feed.chunk, limit);
    Piece own{.seq = 0};
    own.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                      tokens.begin() + static_cast<std::ptrdiff_t>(end));
    if (end > prompt_size - 1) {
      own.flags = wire::kScorePrompt;
      own.next_token = tokens[end];
    }
    std::vector<Piece> pieces;
    for (std::uint32_t mate = 1; mate <= feed.mates; ++mate) {
      Piece other{.seq = mate, .flags = wire::kSampleToken};
      for (std::uint32_t i = 0; i <= mate % 5; ++i) {
        other.tokens.push_back(static_cast<std::int32_t>(49'000 * random_uniform(mate, at, i)));
      }
      pieces.push_back(other);
    }
    pieces.insert(pieces.begin() + feed.mates / 2, own);
    grid.step(pieces);
    at = end;
  }
  for (std::uint32_t seq = 0; seq <= feed.mates; ++seq)
    grid.release(seq);
}

Rows rows_of(EngineGrid& grid, const GoldenPrompt& prompt, const Feed& feed = {}) {
  Rows rows(prompt.greedy_ids.size());
  force(grid, prompt, feed, [&](std::size_t i, std::span<const float> logits) {
    rows[i] = {logits.begin(), logits.end()};
  });
  return rows;
}

Hashes hashes_of(EngineGrid& grid, const GoldenPrompt& prompt, const Feed& feed = {}) {
  Hashes hashes(prompt.greedy_ids.size());
  force(grid, prompt, feed,
        [&](std::size_t i, std::span<const float> logits) { hashes[i] = hash_bits(logits); });
  return hashes;
}

/// A running comparison with the truth.
struct Distance {
  double largest = 0;  ///< of one logit
  double sum_rms = 0;  ///< of per-position RMS over the vocabulary
  double sum_kl = 0;   ///< nats, of the truth from us
  std::size_t positions = 0;
  std::size_t same_best = 0;

  [[nodiscard]] double rms() const { return sum_rms / static_cast<double>(positions); }
  [[nodiscard]] double kl() const { return sum_kl / static_cast<double>(positions); }
  [[nodiscard]] double agreement() const {
    return static_cast<double>(same_best) / static_cast<double>(positions);
  }
};

std::size_t best(std::span<const float> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double log_sum_exp(std::span<const float> logits) {
  const double peak = logits[best(logits)];
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(logit - peak);
  return std::log(sum) + peak;
}

/// Adds one position, the truth's whole row given.
void add_row(Distance& distance, std::span<const float> truth, std::span<const float> logits) {
  const double truth_sum = log_sum_exp(truth);
  const double own_sum = log_sum_exp(logits);
  double squares = 0;
  double kl = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double difference = static_cast<double>(logits[i]) - truth[i];
    const double log_p = truth[i] - truth_sum;
    squares += difference * difference;
    kl += std::exp(log_p) * (log_p - (logits[i] - own_sum));
    distance.largest = std::max(distance.largest, std::abs(difference));
  }
  distance.sum_rms += std::sqrt(squares / static_cast<double>(truth.size()));
  distance.sum_kl += kl;
  distance.same_best += best(truth) == best(logits) ? 1 : 0;
  ++distance.positions;
}

void add_rows(Distance& distance, const Rows& truth, const Rows& rows) {
  REQUIRE(truth.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    add_row(distance, truth[i], rows[i]);
}

/// The largest error of the logits that the golden file has, and whether the best token is the
/// reference's wherever its two best differ by more than `bound`.
double golden_error(const GoldenPrompt& prompt, const Rows& rows, double bound) {
  double largest = 0;
  const auto look = [&](std::size_t position, std::int32_t token, double logit) {
    const double own = rows[position][static_cast<std::size_t>(token)];
    largest = std::max(largest, std::abs(own - logit));
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(rows[i].size() == 49'152);
    for (std::size_t j = 0; j < prompt.top_ids[i].size(); ++j) {
      look(i, prompt.top_ids[i][j], prompt.top_logits[i][j]);
    }
    if (prompt.top_logits[i][0] - prompt.top_logits[i][1] > bound) {
      CHECK_MESSAGE(best(rows[i]) == static_cast<std::size_t>(prompt.greedy_ids[i]),
                    prompt.id << " position " << i);
    }
  }
  for (std::size_t j = 0; j < prompt.first_logits.size(); ++j) {
    look(0, prompt.first_logit_ids[j], prompt.first_logits[j]);
  }
  return largest;
}

std::vector<GoldenPrompt> prompts_up_to(std::size_t max_tokens) {
  std::vector<GoldenPrompt> prompts = test::read_golden();
  REQUIRE_MESSAGE(prompts.size() == 20, "tests/golden is missing: run from the repository root");
  std::erase_if(prompts, [&](const GoldenPrompt& prompt) {
    return prompt.prompt_ids.size() + prompt.greedy_ids.size() > max_tokens;
  });
  return prompts;
}

GridOptions options_for(std::uint32_t tp, std::uint32_t pp, wire::ActivationMode activations,
                        wire::KvType kv_type) {
  const std::string path = test::real_model_path();
  REQUIRE_MESSAGE(!path.empty(), test::kNoModel);
  return {.model_path = path,
          .tp_size = tp,
          .pp_size = pp,
          .activations = activations,
          .kv_type = kv_type};
}

constexpr auto kFloat = wire::ActivationMode::kFloat;
constexpr auto kInt8 = wire::ActivationMode::kInt8;
constexpr auto kF16 = wire::KvType::kF16;
constexpr auto kF32 = wire::KvType::kF32;

}  // namespace

TEST_CASE("float activations are at the truth, and int8 at every TP at most as far as llama.cpp") {
  const bool full = test::full_sweep();
  EngineGrid exact(options_for(1, 1, kFloat, kF32));
  EngineGrid half(options_for(1, 1, kFloat, kF16));
  std::vector<EngineGrid> rounded;
  std::vector<EngineGrid> exact_split;
  for (std::uint32_t tp : {1U, 2U, 3U})
    rounded.emplace_back(options_for(tp, tp, kInt8, kF16));
  for (std::uint32_t tp : {2U, 3U})
    exact_split.emplace_back(options_for(tp, 1, kFloat, kF32));
  double exact_error = 0;
  double half_error = 0;
  Distance from_half;
  std::array<Distance, 3> from_rounded;
  for (const GoldenPrompt& prompt : prompts_up_to(full ? 10'000 : 400)) {
    const Rows truth = rows_of(exact, prompt);
    exact_error = std::max(exact_error, golden_error(prompt, truth, 0.001));
    const Rows half_rows = rows_of(half, prompt);
    half_error = std::max(half_error, golden_error(prompt, half_rows, 0.05));
    add_rows(from_half, truth, half_rows);
    for (std::size_t i = 0; i < rounded.size(); ++i) {
      add_rows(from_rounded[i], truth, rows_of(rounded[i], prompt));
    }
    if (!full && prompt.prompt_ids.size() > 20) continue;
    for (EngineGrid& grid : exact_split) {
      exact_error = std::max(exact_error, golden_error(prompt, rows_of(grid, prompt), 0.001));
    }
  }
  MESSAGE("float, f32 KV: largest error " << exact_error);
  MESSAGE("float, f16 KV: largest error " << half_error << ", over the vocabulary "
                                          << from_half.largest << ", RMS " << from_half.rms());
  CHECK(exact_error <= 0.001);
  CHECK(half_error <= 0.05);
  CHECK(from_half.largest <= 0.05);
  CHECK(from_half.rms() <= 0.01);
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    const Distance& distance = from_rounded[i];
    MESSAGE("int8, tp " << i + 1 << ", over " << distance.positions << " positions: RMS "
                        << distance.rms() << ", KL " << distance.kl() << ", same best "
                        << distance.agreement());
    CHECK(distance.rms() <= 0.205);
    CHECK(distance.kl() <= 0.0031);
    CHECK(distance.agreement() >= 0.974);
  }
}

TEST_CASE("stages, chunks and batch mates change no bit of the logits") {
  const bool full = test::full_sweep();
  const std::vector<GoldenPrompt> prompts = prompts_up_to(full ? 10'000 : 70);
  const std::vector<Feed> feeds = {{.chunk = 512},
                                   {.chunk = 1},
                                   {.chunk = 7},
                                   {.chunk = 64},
                                   {.chunk = 512, .mates = 16},
                                   {.chunk = 7, .mates = 16}};
  for (wire::ActivationMode activations : {kInt8, kFloat}) {
    for (std::uint32_t tp : {1U, 2U, 3U}) {
      EngineGrid whole(options_for(tp, 1, activations, kF16));
      std::map<std::string, Hashes> expected;
      for (const GoldenPrompt& prompt : prompts)
        expected[prompt.id] = hashes_of(whole, prompt);
      const std::vector<std::uint32_t> stages = full
                                                    ? std::vector<std::uint32_t>{1, 2, 3, 6}
                                                    : std::vector<std::uint32_t>{tp == 1 ? 6U : tp};
      for (std::uint32_t pp : stages) {
        EngineGrid staged(options_for(tp, pp, activations, kF16));
        std::size_t turn = pp;
        for (const GoldenPrompt& prompt : prompts) {
          // The short run gives each prompt one way of feeding, so that each way meets several
          // prompts.
          for (std::size_t i = 0; i < feeds.size(); ++i) {
            if (!full && i != turn % feeds.size()) continue;
            if (activations == kFloat && !full && turn % 3 != 0) continue;
            CHECK_MESSAGE(hashes_of(staged, prompt, feeds[i]) == expected[prompt.id],
                          prompt.id << " at tp " << tp << ", pp " << pp << ", chunks of "
                                    << feeds[i].chunk << " among " << feeds[i].mates);
          }
          ++turn;
        }
      }
    }
  }
}

TEST_CASE("greedy decoding of the real model gives the reference's text where it is clear") {
  EngineGrid grid(options_for(2, 3, kFloat, kF32));
  const auto prompts = prompts_up_to(70);
  const GoldenPrompt& prompt = prompts.front();
  auto scored = grid.step({{.seq = 0, .tokens = prompt.prompt_ids, .flags = wire::kSampleToken}});
  for (std::int32_t expected : prompt.greedy_ids) {
    REQUIRE(scored.size() == 1);
    REQUIRE(scored[0].token == expected);
    scored = grid.step({{.seq = 0, .tokens = {expected}, .flags = wire::kSampleToken}});
  }
}

}  // namespace brigade::worker
