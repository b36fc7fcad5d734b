// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/model/gguf.h"
#include "tests/support/engine_grid.h"
#include "tests/support/prompt_logits.h"

/// A tiny random model of every family against transformers in double precision
/// (tests/golden/make_family_golden.py), on every grid it allows.
namespace brigade::worker {
namespace {

using test::EngineGrid;
using test::GridOptions;
using test::largest_difference;
using test::prompt_logits;
using test::PromptLogits;

constexpr std::array kFamilies = {"llama3",      "llama-bias",     "mistral",    "mixtral",
                                  "mixtral-old", "qwen2",          "qwen2-yarn", "qwen3",
                                  "qwen3moe",    "qwen3moe-mixed", "phi3",       "phi3-long",
                                  "phi3-short",  "gemma",          "gemma2",     "gemma3"};

struct Golden {
  std::string model_path;
  std::vector<std::int32_t> tokens;
  PromptLogits logits;
  double deviation = 0;  ///< of all logits
};

Golden read_golden(const std::string& name) {
  const std::string folder = "tests/golden/families/";
  const auto file = model::GgufFile::open(folder + name + ".logits.gguf");
  REQUIRE_MESSAGE(file.ok(), file.status().message());
  Golden golden{.model_path = folder + name + ".gguf"};
  const std::vector<std::int64_t> tokens = (*file)->integers("golden.tokens").value();
  for (const std::int64_t token : tokens)
    golden.tokens.push_back(static_cast<std::int32_t>(token));
  const model::TensorInfo* logits = (*file)->find_tensor("logits");
  REQUIRE(logits != nullptr);
  REQUIRE(logits->rows == static_cast<std::int64_t>(golden.tokens.size()));
  const std::vector<float> values = logits->read_floats().value();
  double squares = 0;
  for (const float x : values)
    squares += static_cast<double>(x) * x;
  for (std::int64_t i = 0; i < logits->rows; ++i) {
    const auto first = values.begin() + i * logits->cols;
    std::vector<float> row(first, first + logits->cols);
    // Row i predicts position i + 1.
    golden.logits[static_cast<std::uint32_t>(i) + 1] = std::move(row);
  }
  golden.deviation = std::sqrt(squares / static_cast<double>(logits->rows * logits->cols));
  return golden;
}

GridOptions exact_options(const Golden& golden, std::int64_t tp, std::int64_t pp) {
  return {.model_path = golden.model_path,
          .tp_size = static_cast<std::uint32_t>(tp),
          .pp_size = static_cast<std::uint32_t>(pp),
          .activations = wire::ActivationMode::kFloat,
          .kv_type = wire::KvType::kF32,
          .num_kv_blocks = 64};
}

model::ModelSpec spec_of(const Golden& golden) {
  return model::read_spec(**model::GgufFile::open(golden.model_path)).value();
}

double rms_difference(const PromptLogits& a, const PromptLogits& b) {
  double squares = 0;
  double count = 0;
  for (const auto& [position, logits] : a) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      squares += std::pow(static_cast<double>(logits[i]) - b.at(position)[i], 2);
      ++count;
    }
  }
  return std::sqrt(squares / count);
}

}  // namespace

TEST_CASE(
    "every family is at its double-precision logits on every grid, and stages, chunks and "
    "batch mates change no bit") {
  for (const std::string name : kFamilies) {
    const Golden golden = read_golden(name);
    const model::ModelSpec spec = spec_of(golden);
    double worst = 0;
    std::int64_t tp = 1;
    for (; model::check_grid(spec, tp, 1).ok(); ++tp) {
      EngineGrid whole(exact_options(golden, tp, 1));
      const PromptLogits expected = prompt_logits(whole, golden.tokens, golden.tokens.size());
      worst = std::max<double>(worst, largest_difference(expected, golden.logits));
      for (std::int64_t pp = 1; pp <= spec.num_layers; ++pp) {
        CAPTURE(name);
        CAPTURE(tp);
        CAPTURE(pp);
        EngineGrid staged(exact_options(golden, tp, pp));
        const std::size_t chunk = std::array{1U, 7U, 16U}[static_cast<std::size_t>(tp + pp) % 3];
        CHECK(prompt_logits(staged, golden.tokens, chunk, /*mates=*/3) == expected);
      }
    }
    MESSAGE(name << ": largest error " << worst << " of logits of deviation " << golden.deviation
                 << ", up to tp " << tp - 1);
    CHECK(worst <= 2e-5 * golden.deviation);
  }
}

TEST_CASE("the reference ops are at every family's logits") {
  for (const std::string name : kFamilies) {
    const Golden golden = read_golden(name);
    GridOptions options = exact_options(golden, 1, 1);
    options.reference_ops = true;
    EngineGrid grid(options);
    const PromptLogits logits = prompt_logits(grid, golden.tokens, 32);
    const double error = largest_difference(logits, golden.logits) / golden.deviation;
    CHECK_MESSAGE(error <= 5e-6, name << ": " << error);
  }
}

TEST_CASE("int8 activations and f16 KV stay close in every family, alike however a prompt is fed") {
  for (const std::string name : kFamilies) {
    const Golden golden = read_golden(name);
    const model::ModelSpec spec = spec_of(golden);
    for (std::int64_t tp = 1; model::check_grid(spec, tp, 1).ok(); ++tp) {
      GridOptions options = exact_options(golden, tp, 1);
      options.activations = wire::ActivationMode::kInt8;
      options.kv_type = wire::KvType::kF16;
      EngineGrid whole(options);
      const PromptLogits logits = prompt_logits(whole, golden.tokens, golden.tokens.size());
      const double error = rms_difference(logits, golden.logits) / golden.deviation;
      CHECK_MESSAGE(error <= 0.05, name << " at tp " << tp << ": " << error);
      options.pp_size = static_cast<std::uint32_t>(std::min<std::int64_t>(2, spec.num_layers));
      EngineGrid staged(options);
      CHECK(prompt_logits(staged, golden.tokens, 7, /*mates=*/3) == logits);
    }
  }
}

}  // namespace brigade::worker
