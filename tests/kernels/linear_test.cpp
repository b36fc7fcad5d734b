// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/kernels/random_data.h"

namespace brigade::kernels {
namespace {

/// Rounding errors of a chain of `steps` operations over products whose magnitudes add up to
/// `magnitude`.
double chain_bound(std::int64_t steps, double magnitude) {
  return static_cast<double>(steps) * kEpsilon * magnitude;
}

double sum_of_magnitudes(const float* x, std::int64_t size) {
  double sum = 0;
  for (std::int64_t k = 0; k < size; ++k)
    sum += std::abs(static_cast<double>(x[k]));
  return sum;
}

/// Half a step of rounding in each group, times the largest weight.
double int8_bound(const float* x, std::int64_t size, double weight) {
  double bound = 0;
  for (std::int64_t g = 0; g < size; g += kGroupSize) {
    double amax = 0;
    for (std::int64_t k = g; k < g + kGroupSize; ++k)
      amax = std::max<double>(amax, std::abs(x[k]));
    bound += 32 * weight * amax / 127 * 0.5001;
  }
  return bound;
}

struct Case {
  model::TensorType type;
  std::int64_t rows;  // of the weight
  std::int64_t cols;
  std::int64_t tokens;
};

OwnedMatrix product(Ops& ops, const std::vector<WeightSlice>& slices, const OwnedMatrix& x) {
  const std::unique_ptr<Weight> weight = pack(ops, slices);
  OwnedMatrix out(x.rows, weight->rows(), /*padding=*/3);
  ops.linear(*weight, x.view(), out.view());
  return out;
}

/// Largest error in units of its bound.
template <typename Bound>
double worst(const OwnedMatrix& actual, const OwnedMatrix& expected, const Bound& bound) {
  double result = 0;
  for (std::int64_t i = 0; i < actual.rows; ++i) {
    for (std::int64_t n = 0; n < actual.cols; ++n) {
      const double error =
          std::abs(static_cast<double>(actual.view().row(i)[n]) - expected.view().row(i)[n]);
      // Written so that NaN counts as wrong.
      if (!(error <= result * bound(i))) result = error / bound(i);
      if (std::isnan(error)) return 1e30;
    }
  }
  return result;
}

void check_against_reference(CpuTarget target, const Case& c) {
  CAPTURE(to_string(target));
  CAPTURE(type_name(c.type));
  CAPTURE(c.rows);
  CAPTURE(c.cols);
  CAPTURE(c.tokens);
  Random random(static_cast<std::uint64_t>(c.rows * 1000 + c.cols + c.tokens));
  const OwnedTensor tensor(random, c.type, c.rows, c.cols);
  const OwnedMatrix x = random_matrix(random, c.tokens, c.cols, 3);
  const double weight = max_weight(c.type);
  const auto magnitude = [&](std::int64_t i) {
    return weight * sum_of_magnitudes(x.view().row(i), c.cols);
  };
  const auto exact = make_reference_ops(ActivationMode::kFloat);
  const OwnedMatrix expected = product(*exact, {tensor.all()}, x);
  const auto floats = cpu_ops(target, 1, ActivationMode::kFloat);
  CHECK(worst(product(*floats, {tensor.all()}, x), expected,
              [&](std::int64_t i) { return chain_bound(c.cols + 3, magnitude(i)) + 1e-30; }) <= 1);
  if (!is_quantized(format_of(c.type).form)) return;

  const auto int8 = cpu_ops(target);
  const OwnedMatrix actual = product(*int8, {tensor.all()}, x);
  const auto rounded = make_reference_ops(ActivationMode::kInt8);
  const auto rounding = [&](std::int64_t i) {
    return chain_bound(3 * c.cols / kGroupSize + 6, 1.01 * magnitude(i)) + 1e-30;
  };
  CHECK(worst(actual, product(*rounded, {tensor.all()}, x), rounding) <= 1);
  CHECK(worst(actual, expected, [&](std::int64_t i) {
          return int8_bound(x.view().row(i), c.cols, weight) + rounding(i);
        }) <= 1);
}

}  // namespace

TEST_CASE(
    "a product differs from the reference by no more than its roundings, for all forms and odd "
    "shapes") {
  for (const CpuTarget target : supported_targets()) {
    for (const model::TensorType type : kAllTypes) {
      for (const std::int64_t cols : {32, 96, 576, 1536}) {
        for (const std::int64_t rows : {1, 16, 31, 50, 97}) {
          for (const std::int64_t tokens : {1, 2, 3, 5, 8, 13, 25, 70}) {
            if (target == CpuTarget::kScalar && rows * cols * tokens > 200000) continue;
            if (rows > 50 && cols > 576 && tokens > 13) continue;
            check_against_reference(target, {type, rows, cols, tokens});
          }
        }
      }
    }
  }
}

TEST_CASE("plain forms take any number of columns") {
  for (const CpuTarget target : supported_targets()) {
    for (const auto type :
         {model::TensorType::kF16, model::TensorType::kBF16, model::TensorType::kF32}) {
      for (const std::int64_t cols : {1, 7, 33, 145})
        check_against_reference(target, {type, 37, cols, 9});
    }
  }
}

TEST_CASE("a row of a product has the same bits alone and in batches of 1 to 70") {
  for (const CpuTarget target : supported_targets()) {
    for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kFloat}) {
      for (const model::TensorType type : kAllTypes) {
        CAPTURE(to_string(target));
        CAPTURE(type_name(type));
        Random random(7);
        const OwnedTensor tensor(random, type, 40, 160);
        OwnedMatrix x = random_matrix(random, 70, 160);
        const auto ops = cpu_ops(target, 1, mode);
        const std::unique_ptr<Weight> weight = pack(*ops, {tensor.all()});
        OwnedMatrix all(70, 40);
        ops->linear(*weight, x.view(), all.view());
        std::int64_t differing = 0;
        for (std::int64_t i = 0; i < 70; ++i) {
          OwnedMatrix alone(1, 40);
          ops->linear(*weight, x.rows_from(i, 1), alone.view());
          OwnedMatrix first(i + 1, 40);
          ops->linear(*weight, x.rows_from(0, i + 1), first.view());
          differing += !same_bits(all.view(), i, alone.view());
          differing += !same_bits(all.view(), 0, first.view());
        }
        CHECK(differing == 0);
      }
    }
  }
}

TEST_CASE("rows past what fits the prepared activations at once have the same bits") {
  Random random(11);
  const OwnedTensor tensor(random, model::TensorType::kQ4_1, 16, 4096);
  OwnedMatrix x = random_matrix(random, 200, 4096);
  const auto ops = cpu_ops(supported_targets().back(), 2);
  const std::unique_ptr<Weight> weight = pack(*ops, {tensor.all()});
  OwnedMatrix all(200, 16);
  ops->linear(*weight, x.view(), all.view());
  for (const std::int64_t i : {0, 127, 128, 199}) {
    OwnedMatrix alone(1, 16);
    ops->linear(*weight, x.rows_from(i, 1), alone.view());
    CHECK(same_bits(all.view(), i, alone.view()));
  }
}

TEST_CASE("all targets and thread counts give the same bits") {
  for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kFloat}) {
    for (const model::TensorType type : kAllTypes) {
      for (const std::int64_t tokens : {1, 2, 6, 33}) {
        CAPTURE(type_name(type));
        CAPTURE(tokens);
        Random random(13);
        const OwnedTensor tensor(random, type, 150, 576);
        const OwnedMatrix x = random_matrix(random, tokens, 576);
        const auto first = cpu_ops(CpuTarget::kScalar, 1, mode);
        const OwnedMatrix expected = product(*first, {tensor.all()}, x);
        for (const CpuTarget target : supported_targets()) {
          for (const int threads : {1, 2, 3}) {
            CAPTURE(to_string(target));
            CAPTURE(threads);
            const auto ops = cpu_ops(target, threads, mode);
            CHECK(same_bits(product(*ops, {tensor.all()}, x).view(), 0, expected.view()));
          }
        }
      }
    }
  }
}

TEST_CASE("extreme weights and activations stay exact integers in every group") {
  // All weights at the end of their range against all activations at +-127: the sums that come
  // closest to 16 bits.
  for (const model::TensorType type : kQuantizedTypes) {
    for (const std::byte fill :
         {std::byte{0xff}, std::byte{0x00}, std::byte{0x80}, std::byte{0x7f}}) {
      Random random(17);
      OwnedTensor tensor(random, type, 16, 32);
      const auto block = static_cast<int>(format_of(type).block_bytes);
      const ScalePlaces places = scale_places(type);
      const auto is_half = [](int at, int place) {
        return place >= 0 && (at == place || at == place + 1);
      };
      for (std::size_t i = 0; i < tensor.bytes.size(); ++i) {
        const int at = static_cast<int>(i) % block;
        if (!is_half(at, places.scale) && !is_half(at, places.min)) tensor.bytes[i] = fill;
      }
      OwnedMatrix x(3, 32);
      for (std::size_t i = 0; i < x.values.size(); ++i) {
        x.values[i] = i < 32 ? 1.0F : i < 64 ? -1.0F : (i % 3 == 0 ? 1.0F : -1.0F);
      }
      const auto reference = make_reference_ops(ActivationMode::kInt8);
      const OwnedMatrix expected = product(*reference, {tensor.all()}, x);
      for (const CpuTarget target : supported_targets()) {
        CAPTURE(to_string(target));
        CAPTURE(type_name(type));
        const auto ops = cpu_ops(target);
        CHECK(worst(product(*ops, {tensor.all()}, x), expected,
                    [&](std::int64_t) { return chain_bound(8, 33 * max_weight(type)); }) <= 1);
      }
    }
  }
}

TEST_CASE("zeros, denormals and huge activations do not poison a product") {
  Random random(19);
  const OwnedTensor tensor(random, model::TensorType::kQ4_1, 16, 96);
  OwnedMatrix x(1, 96);
  for (std::size_t i = 0; i < 96; ++i) {
    x.values[i] = i < 32 ? 0.0F : i < 64 ? 1e-39F : (i % 2 == 0 ? 1e30F : -1e30F);
  }
  const auto scalar = cpu_ops(CpuTarget::kScalar);
  const OwnedMatrix expected = product(*scalar, {tensor.all()}, x);
  for (const CpuTarget target : supported_targets()) {
    const auto ops = cpu_ops(target);
    const OwnedMatrix actual = product(*ops, {tensor.all()}, x);
    CHECK(same_bits(actual.view(), 0, expected.view()));
    for (std::int64_t n = 0; n < 16; ++n)
      CHECK(std::isfinite(actual.view().row(0)[n]));
  }
}

TEST_CASE("a stack of slices equals its slices, whatever their forms and sizes") {
  Random random(23);
  const OwnedTensor q(random, model::TensorType::kQ4_1, 70, 320);
  const OwnedTensor k(random, model::TensorType::kQ4_1, 33, 320);
  const OwnedTensor v(random, model::TensorType::kQ8_0, 40, 320);
  const OwnedTensor plain(random, model::TensorType::kF16, 40, 320);
  // Rows and columns as ranks take them: at multiples of a block, rows anywhere.
  const std::vector<WeightSlice> slices = {{&q.info, {3, 61}, {64, 256}},
                                           {&k.info, {0, 33}, {64, 256}},
                                           {&v.info, {7, 40}, {128, 320}},
                                           {&plain.info, {1, 40}, {0, 192}}};
  for (const CpuTarget target : supported_targets()) {
    for (const int threads : {1, 3}) {
      for (const std::int64_t tokens : {1, 40}) {
        const OwnedMatrix x = random_matrix(random, tokens, 192);
        const auto ops = cpu_ops(target, threads);
        const OwnedMatrix stacked = product(*ops, slices, x);
        std::int64_t column = 0;
        for (const WeightSlice& slice : slices) {
          const OwnedMatrix alone = product(*ops, {slice}, x);
          ConstMatrix part = stacked.view();
          part.data += column;
          CHECK(same_bits(part, 0, alone.view()));
          column += alone.cols;
        }
        CHECK(column == stacked.cols);
      }
    }
  }
}

TEST_CASE("a product writes nothing outside its matrix") {
  Random random(29);
  for (const model::TensorType type : kAllTypes) {
    const OwnedTensor tensor(random, type, 21, 64);
    const OwnedMatrix x = random_matrix(random, 5, 64);
    for (const CpuTarget target : supported_targets()) {
      const auto ops = cpu_ops(target);
      const std::unique_ptr<Weight> weight = pack(*ops, {tensor.all()});
      OwnedMatrix out(5, 21, /*padding=*/11);
      ops->linear(*weight, x.view(), out.view());
      for (std::int64_t i = 0; i < 5; ++i) {
        for (std::int64_t n = 21; n < 32; ++n)
          CHECK(out.view().row(i)[n] == -77.0F);
      }
    }
  }
}

TEST_CASE("embedding gives exact rows of the table, and zeros for tokens of other ranks") {
  Random random(31);
  for (const model::TensorType type : kAllTypes) {
    const OwnedTensor tensor(random, type, 90, 96);
    const std::vector<WeightSlice> slices = {{&tensor.info, {20, 77}, {0, 96}}};
    const std::vector<std::int32_t> tokens = {20, 76, 19, 77, 0, 41, 41, 89};
    const auto reference = make_reference_ops(ActivationMode::kInt8);
    OwnedMatrix expected(8, 96);
    reference->embed(*pack(*reference, slices), 20, tokens, expected.view());
    for (const int threads : {1, 2}) {
      const auto ops = cpu_ops(supported_targets().back(), threads);
      OwnedMatrix out(8, 96);
      ops->embed(*pack(*ops, slices), 20, tokens, out.view());
      CHECK(same_bits(out.view(), 0, expected.view()));
    }
    for (std::int64_t k = 0; k < 96; ++k)
      CHECK(expected.view().row(2)[k] == 0.0F);
    CHECK(expected.view().row(0)[5] != 0.0F);
  }
}

}  // namespace brigade::kernels
