// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/engine_grid.h"
#include "tests/support/golden.h"
#include "tests/support/tiny_model.h"

/// The real model over its whole context, a chunk at a time, against a double-precision run
/// (tests/golden/make_long_golden.py). The short run goes as far as its second position.
namespace brigade::worker {
namespace {

using test::EngineGrid;

/// The best logits after the token at a position.
struct Best {
  std::uint32_t position = 0;
  std::vector<std::int32_t> ids;
  std::vector<double> logits;
};

std::vector<Best> read_best() {
  std::ifstream in("tests/golden/smollm2-135m-q4_1/long.json");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  REQUIRE_MESSAGE(!text.empty(), "tests/golden is missing: run from the repository root");
  const boost::json::value golden = boost::json::parse(text);
  const auto positions = boost::json::value_to<std::vector<std::uint32_t>>(golden.at("positions"));
  std::vector<Best> best;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto& entry = golden.at("best").at(i);
    best.push_back({.position = positions[i],
                    .ids = boost::json::value_to<std::vector<std::int32_t>>(entry.at("ids")),
                    .logits = boost::json::value_to<std::vector<double>>(entry.at("logits"))});
  }
  if (!test::full_sweep()) best.resize(2);
  return best;
}

/// The short prompts and their answers, again and again.
std::vector<std::int32_t> read_tokens(std::size_t count) {
  std::vector<std::int32_t> once;
  for (const test::GoldenPrompt& prompt : test::read_golden()) {
    once.insert(once.end(), prompt.prompt_ids.begin(), prompt.prompt_ids.end());
    once.insert(once.end(), prompt.greedy_ids.begin(), prompt.greedy_ids.end());
  }
  REQUIRE_FALSE(once.empty());
  std::vector<std::int32_t> tokens;
  while (tokens.size() < count) {
    const std::size_t more = std::min(count - tokens.size(), once.size());
    tokens.insert(tokens.end(), once.begin(), once.begin() + static_cast<std::ptrdiff_t>(more));
  }
  return tokens;
}

/// The logits after each of the positions, fed in chunks that end there at the latest.
std::vector<std::vector<float>> logits_at(const test::GridOptions& options,
                                          const std::vector<Best>& best, std::size_t chunk) {
  EngineGrid grid(options);
  std::vector<std::vector<float>> found;
  grid.observe_logits([&](const ScoreRow& /*row*/, std::span<const float> logits) {
    found.emplace_back(logits.begin(), logits.end());
  });
  const std::vector<std::int32_t> tokens = read_tokens(best.back().position + 1);
  std::size_t next = 0;
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t stop = best[next].position + 1;
    const std::size_t end = std::min(at + chunk, stop);
    test::Piece piece{.seq = 0};
    piece.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                        tokens.begin() + static_cast<std::ptrdiff_t>(end));
    if (end == stop) {
      piece.flags = wire::kSampleToken;
      ++next;
    }
    grid.step({piece});
    at = end;
  }
  return found;
}

test::GridOptions options_for(wire::ActivationMode activations, wire::KvType kv_type) {
  const std::string path = test::real_model_path();
  REQUIRE_MESSAGE(!path.empty(), test::kNoModel);
  return {.model_path = path, .activations = activations, .kv_type = kv_type};
}

}  // namespace

TEST_CASE("logits far into the context are at the truth, and chunks change no bit of them") {
  const std::vector<Best> best = read_best();
  const auto exact =
      logits_at(options_for(wire::ActivationMode::kFloat, wire::KvType::kF32), best, 512);
  const test::GridOptions usual = options_for(wire::ActivationMode::kInt8, wire::KvType::kF16);
  const auto rounded = logits_at(usual, best, 512);
  REQUIRE(exact.size() == best.size());
  for (std::size_t i = 0; i < best.size(); ++i) {
    double error = 0;
    double rounded_error = 0;
    for (std::size_t j = 0; j < best[i].ids.size(); ++j) {
      const auto id = static_cast<std::size_t>(best[i].ids[j]);
      error = std::max(error, std::abs(exact[i][id] - best[i].logits[j]));
      rounded_error = std::max(rounded_error, std::abs(rounded[i][id] - best[i].logits[j]));
    }
    MESSAGE("after " << best[i].position + 1 << " tokens: float " << error << ", int8 "
                     << rounded_error);
    CHECK(error <= 0.002);
    CHECK(rounded_error <= 1.0);
  }
  test::GridOptions split = usual;
  split.pp_size = 2;
  CHECK(logits_at(split, best, 200) == rounded);
}

}  // namespace brigade::worker
