// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "tests/support/engine_grid.h"

/// Writes the logits that a model gives after tokens of texts, for make_accuracy.py:
///   dump_logits MODEL.gguf TEXTS.json OUT.f32 int8|float TP
/// TEXTS.json: [{"tokens": [...], "from": n}, ...]. OUT.f32: text by text, for each position p of
/// it from n on the logits that predict the token there: f32 [vocab_size].
namespace brigade::test {
namespace {

constexpr std::size_t kChunk = 256;  // a file holds texts of at most 4096 tokens
constexpr std::uint64_t kKvBlocks = 256;

struct Text {
  std::vector<std::int32_t> tokens;
  std::size_t from = 1;
};

std::vector<Text> read_texts(const char* path) {
  std::ifstream file(path);
  const std::string json(std::istreambuf_iterator<char>(file), {});
  std::vector<Text> texts;
  const boost::json::value list = boost::json::parse(json);
  for (const boost::json::value& value : list.as_array()) {
    texts.push_back({.tokens = boost::json::value_to<std::vector<std::int32_t>>(value.at("tokens")),
                     .from = boost::json::value_to<std::size_t>(value.at("from"))});
  }
  return texts;
}

void dump(EngineGrid& grid, const Text& text, std::ofstream& out) {
  const std::size_t num_fed = text.tokens.size() - 1;
  grid.observe_logits([&](const worker::ScoreRow& row, std::span<const float> logits) {
    if (row.position < text.from) return;
    out.write(reinterpret_cast<const char*>(logits.data()),
              static_cast<std::streamsize>(logits.size_bytes()));
  });
  for (std::size_t at = 0; at < num_fed; at += kChunk) {
    const std::size_t end = std::min(at + kChunk, num_fed);
    grid.step({{.seq = 0,
                .tokens = {text.tokens.begin() + static_cast<std::ptrdiff_t>(at),
                           text.tokens.begin() + static_cast<std::ptrdiff_t>(end)},
                .flags = wire::kScorePrompt,
                .next_token = text.tokens[end]}});
  }
  grid.release(0);
}

int run(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: dump_logits MODEL.gguf TEXTS.json OUT.f32 int8|float TP\n");
    return 2;
  }
  const bool int8 = std::string(argv[4]) == "int8";
  EngineGrid grid({.model_path = argv[1],
                   .tp_size = static_cast<std::uint32_t>(std::strtoul(argv[5], nullptr, 10)),
                   .activations = int8 ? wire::ActivationMode::kInt8 : wire::ActivationMode::kFloat,
                   .num_kv_blocks = kKvBlocks});
  std::ofstream out(argv[3], std::ios::binary);
  for (const Text& text : read_texts(argv[2]))
    dump(grid, text, out);
  out.close();
  INVARIANT(out.good()) << "cannot write " << argv[3];
  return 0;
}

}  // namespace
}  // namespace brigade::test

int main(int argc, char** argv) {
  return brigade::test::run(argc, argv);
}
