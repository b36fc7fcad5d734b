// SPDX-License-Identifier: Apache-2.0
#include "kernels/weight_format.h"

#include <doctest/doctest.h>

#include "tests/kernels/random_data.h"

namespace brigade::kernels {

TEST_CASE("stored blocks decode to the values their format defines") {
  std::vector<std::byte> block(20);
  OwnedTensor::put_half(&block[0], 0.5F);
  OwnedTensor::put_half(&block[2], -3.0F);
  block[4] = std::byte{0x2f};   // elements 0 and 16
  block[19] = std::byte{0x91};  // elements 15 and 31
  double out[32];
  decode_row(*find_format(model::TensorType::kQ4_1), block.data(), 32, out);
  CHECK(out[0] == 15 * 0.5 - 3);
  CHECK(out[16] == 2 * 0.5 - 3);
  CHECK(out[15] == 1 * 0.5 - 3);
  CHECK(out[31] == 9 * 0.5 - 3);
  CHECK(out[1] == -3);

  std::vector<std::byte> wide(34);
  OwnedTensor::put_half(&wide[0], 0.25F);
  wide[2] = std::byte{0x80};
  wide[33] = std::byte{0x7f};
  decode_row(*find_format(model::TensorType::kQ8_0), wide.data(), 32, out);
  CHECK(out[0] == -32);
  CHECK(out[31] == 31.75);

  std::vector<std::byte> narrow(18);
  OwnedTensor::put_half(&narrow[0], 2.0F);
  narrow[2] = std::byte{0xf0};
  decode_row(*find_format(kQ4_0), narrow.data(), 32, out);
  CHECK(out[0] == -16);
  CHECK(out[16] == 14);
}

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
  const OwnedTensor tensor(random, model::TensorType::kQ8_0, 10, 96);
  const OwnedTensor narrow(random, model::TensorType::kQ8_0, 10, 64);
  OwnedTensor cut(random, model::TensorType::kQ8_0, 10, 96);
  cut.info.data = cut.info.data.first(900);
  OwnedTensor unknown(random, model::TensorType::kQ8_0, 10, 96);
  unknown.info.type = static_cast<model::TensorType>(14);
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
      {{{&tensor.info, {0, 4}, {16, 48}}}, "in blocks of 32"},
      {{tensor.all(), narrow.all()}, "64 columns stacked on 96"},
      {{cut.all()}, "900 bytes are too few"},
      {{unknown.all()}, "type 14"},
  };
  const auto cpu = cpu_ops(CpuTarget::kScalar);
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

}  // namespace brigade::kernels
