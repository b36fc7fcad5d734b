// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "kernels/weight_format.h"
#include "tests/kernels/random_data.h"

namespace brigade::kernels {
namespace {

/// Blocks of one type and gguf-py's values of them (tests/golden/make_quants_golden.py).
struct GoldenBlocks {
  TensorType type = TensorType::kF32;
  std::vector<std::byte> blocks;
  std::vector<float> values;
};

template <typename T>
T take(const std::vector<char>& bytes, std::size_t& at) {
  REQUIRE(at + sizeof(T) <= bytes.size());
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

std::vector<GoldenBlocks> read_golden_blocks() {
  std::ifstream file("tests/golden/quants.bin", std::ios::binary);
  REQUIRE_MESSAGE(file.good(), "tests/golden is missing: run from the repository root");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::size_t at = 0;
  REQUIRE(take<std::uint32_t>(bytes, at) == 0x51475242);  // "BRGQ"
  REQUIRE(take<std::uint32_t>(bytes, at) == 1);
  std::vector<GoldenBlocks> all(take<std::uint32_t>(bytes, at));
  for (GoldenBlocks& golden : all) {
    golden.type = static_cast<TensorType>(take<std::uint32_t>(bytes, at));
    const std::size_t count = take<std::uint32_t>(bytes, at);
    const std::size_t size = take<std::uint32_t>(bytes, at);
    const std::size_t elements = take<std::uint32_t>(bytes, at);
    golden.blocks.resize(count * size);
    golden.values.resize(count * elements);
    REQUIRE(at + golden.blocks.size() + 4 * golden.values.size() <= bytes.size());
    std::memcpy(golden.blocks.data(), bytes.data() + at, golden.blocks.size());
    at += golden.blocks.size();
    std::memcpy(golden.values.data(), bytes.data() + at, 4 * golden.values.size());
    at += 4 * golden.values.size();
  }
  REQUIRE(at == bytes.size());
  return all;
}

}  // namespace

TEST_CASE("every quantised type decodes to gguf-py's values, edge blocks included") {
  std::set<TensorType> seen;
  for (const GoldenBlocks& golden : read_golden_blocks()) {
    CAPTURE(type_name(golden.type));
    seen.insert(golden.type);
    const StoredFormat& format = format_of(golden.type);
    const auto cols = static_cast<std::int64_t>(golden.values.size());
    REQUIRE(format.block_elements == model::block_elements(golden.type));
    REQUIRE(static_cast<std::int64_t>(golden.blocks.size()) ==
            cols / format.block_elements * format.block_bytes);
    std::vector<double> decoded(golden.values.size());
    decode_row(format, golden.blocks.data(), 0, cols, decoded.data());
    std::int64_t differing = 0;
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      const auto value = static_cast<float>(decoded[i]);
      const float expected = golden.values[i];
      differing += !(value == expected || (std::isnan(value) && std::isnan(expected)));
    }
    CHECK(differing == 0);
    // From a group inside, as ranks take columns.
    std::vector<double> part(96);
    decode_row(format, golden.blocks.data(), 160, 96, part.data());
    CHECK(std::memcmp(part.data(), decoded.data() + 160, 96 * sizeof(double)) == 0);
  }
  CHECK(seen == std::set<TensorType>(std::begin(kQuantizedTypes), std::end(kQuantizedTypes)));
}

TEST_CASE("stored types and kernels agree on the size of every block") {
  for (const TensorType type : kAllTypes) {
    CAPTURE(type_name(type));
    CHECK(format_of(type).block_elements == model::block_elements(type));
    CHECK(format_of(type).block_bytes == model::block_bytes(type));
  }
}

TEST_CASE("what a type takes in memory is known without the kernels") {
  Random random(3);
  for (const TensorType type : kAllTypes) {
    CAPTURE(type_name(type));
    const OwnedTensor tensor(random, type, 32, 256);
    const auto ops = cpu_ops(CpuTarget::kScalar);
    const double bits = 8.0 * static_cast<double>(pack(*ops, {tensor.all()})->bytes());
    CHECK(bits == model::bits_in_memory(type) * 32 * 256);
  }
}

}  // namespace brigade::kernels
