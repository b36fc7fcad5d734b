// SPDX-License-Identifier: Apache-2.0
#include "kernels/weight_format.h"

#include <doctest/doctest.h>

#include "tests/kernels/random_data.h"

namespace brigade::kernels {

TEST_CASE("halves survive a round trip, and rounding is to nearest even") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool nan = (bits & 0x7c00U) == 0x7c00U && (bits & 0x3ffU) != 0;
    const std::uint16_t expected = nan ? static_cast<std::uint16_t>(half | 0x200U) : half;
    wrong += f16_from_f32(f32_from_f16(half)) != expected;
  }
  CHECK(wrong == 0);
  CHECK(f16_from_f32(65519.9F) == 0x7bff);
  CHECK(f16_from_f32(65520.0F) == 0x7c00);
  CHECK(f16_from_f32(1.0F + 0x1p-11F) == 0x3c00);
  CHECK(f16_from_f32(1.0F + 0x1.8p-10F) == 0x3c02);
  CHECK(f16_from_f32(0x1p-25F) == 0);
  CHECK(f16_from_f32(0x1.01p-25F) == 1);
}

TEST_CASE("slices that do not fit their tensor are refused with the reason") {
  Random random(1);
  const OwnedTensor tensor(random, TensorType::kQ8_0, 10, 96);
  const OwnedTensor narrow(random, TensorType::kQ8_0, 10, 64);
  const OwnedTensor super(random, TensorType::kQ4_K, 10, 512);
  OwnedTensor cut(random, TensorType::kQ8_0, 10, 96);
  cut.info.bytes = 900;
  OwnedTensor gone(random, TensorType::kQ8_0, 10, 96);
  gone.info.source = std::make_shared<model::MemorySource>(std::span(gone.bytes).first(900));
  struct Bad {
    std::vector<WeightSlice> slices;
    std::string_view reason;
  };
  const std::vector<Bad> table = {
      {{}, "at least one"},
      {{{nullptr, {0, 1}, {0, 32}}}, "without a tensor"},
      {{{&tensor.info, {0, 11}, {0, 96}}}, "rows [0, 11) of 10"},
      {{{&tensor.info, {-1, 4}, {0, 96}}}, "rows [-1, 4)"},
      {{{&tensor.info, {4, 4}, {0, 96}}}, "rows [4, 4)"},
      {{{&tensor.info, {0, 4}, {0, 128}}}, "columns [0, 128) of 96"},
      {{{&tensor.info, {0, 4}, {16, 48}}}, "in units of 32"},
      {{{&super.info, {0, 4}, {16, 48}}}, "in units of 32"},
      {{tensor.all(), narrow.all()}, "64 columns stacked on 96"},
      {{cut.all()}, "900 bytes are too few"},
      {{gone.all()}, "wanted at"},
  };
  const auto cpu = cpu_ops(CpuTarget::kScalar, /*threads=*/2);
  const auto reference = make_reference_ops(ActivationMode::kInt8);
  for (const Bad& bad : table) {
    for (Ops* ops : {cpu.get(), reference.get()}) {
      const auto result = ops->pack(bad.slices);
      REQUIRE(!result.ok());
      CHECK_MESSAGE(result.status().message().find(bad.reason) != std::string::npos,
                    result.status().message());
    }
  }
}

TEST_CASE("packed rows are the stored ones to the bit, from any column on") {
  for (const TensorType type : kAllTypes) {
    CAPTURE(type_name(type));
    Random random(41);
    const OwnedTensor tensor(random, type, 37, 1024);
    const auto reference = make_reference_ops(ActivationMode::kInt8);
    const auto cpu = cpu_ops(CpuTarget::kScalar, /*threads=*/3);
    for (const Range cols : {Range{0, 1024}, {32, 64}, {224, 288}, {256, 1024}, {96, 992}}) {
      const std::vector<WeightSlice> slices = {{&tensor.info, {3, 37}, cols},
                                               {&tensor.info, {0, 9}, cols}};
      std::vector<std::int32_t> tokens(43);
      for (std::size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = static_cast<std::int32_t>(i);
      OwnedMatrix expected(43, cols.size());
      reference->embed(*pack(*reference, slices), 0, tokens, expected.view());
      OwnedMatrix packed(43, cols.size());
      cpu->embed(*pack(*cpu, slices), 0, tokens, packed.view());
      CHECK(same_bits(packed.view(), 0, expected.view()));
    }
  }
}

}  // namespace brigade::kernels
