// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/target.h"
#include "kernels/op.h"
#include "tests/kernels/random_data.h"

namespace brigade::kernels {
namespace {

OwnedMatrix product(Ops& ops, const std::vector<WeightSlice>& slices, Rounding rounding,
                    const OwnedMatrix& x) {
  const std::unique_ptr<Weight> weight = std::move(ops.pack(slices, rounding)).value();
  OwnedMatrix out(x.rows, weight->rows(), /*padding=*/3);
  ops.linear(*weight, x.view(), out.view());
  return out;
}

double largest_error(const OwnedMatrix& actual, const OwnedMatrix& expected) {
  double largest = 0;
  for (std::int64_t i = 0; i < actual.rows; ++i) {
    for (std::int64_t n = 0; n < actual.cols; ++n) {
      const double error =
          std::abs(static_cast<double>(actual.view().row(i)[n]) - expected.view().row(i)[n]);
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

}  // namespace

TEST_CASE("rounding twice leaves a hundredth of the error, in the CPU ops and the reference") {
  for (const model::TensorType type : kQuantizedTypes) {
    Random random(5);
    const OwnedTensor tensor(random, type, 40, 160);
    const OwnedMatrix x = random_matrix(random, 9, 160);
    const auto exact = make_reference_ops(ActivationMode::kFloat);
    const OwnedMatrix truth = product(*exact, {tensor.all()}, Rounding::kTwice, x);
    const auto reference = make_reference_ops(ActivationMode::kInt8);
    const OwnedMatrix expected = product(*reference, {tensor.all()}, Rounding::kTwice, x);
    for (const CpuTarget target : supported_targets()) {
      CAPTURE(to_string(target));
      CAPTURE(type_name(type));
      const auto ops = cpu_ops(target);
      const double once = largest_error(product(*ops, {tensor.all()}, Rounding::kOnce, x), truth);
      const OwnedMatrix twice = product(*ops, {tensor.all()}, Rounding::kTwice, x);
      CHECK(largest_error(twice, truth) < once / 100);
      CHECK(largest_error(twice, expected) < once / 100);
    }
  }
}

TEST_CASE(
    "a row rounded twice has the same bits alone, in batches, on threads and on every target") {
  Random random(9);
  const OwnedTensor tensor(random, model::TensorType::kQ4_1, 40, 576);
  OwnedMatrix x = random_matrix(random, 200, 576);
  const OwnedMatrix first =
      product(*cpu_ops(supported_targets().front()), {tensor.all()}, Rounding::kTwice, x);
  for (const CpuTarget target : supported_targets()) {
    for (int threads : {1, 3}) {
      const auto ops = cpu_ops(target, threads);
      const std::unique_ptr<Weight> weight =
          std::move(ops->pack(std::vector{tensor.all()}, Rounding::kTwice)).value();
      for (const std::int64_t count : {1, 2, 7, 64, 200}) {
        OwnedMatrix out(count, 40);
        ops->linear(*weight, x.rows_from(0, count), out.view());
        CHECK(same_bits(first.view(), 0, out.view()));
      }
    }
  }
}

TEST_CASE(
    "plain forms stacked with quantised ones, and float activations, are not rounded at all") {
  Random random(3);
  const OwnedTensor quantized(random, model::TensorType::kQ8_0, 16, 64);
  const OwnedTensor plain(random, model::TensorType::kF16, 32, 64);
  const std::vector<WeightSlice> slices = {quantized.all(), plain.all()};
  const OwnedMatrix x = random_matrix(random, 5, 64);
  const auto ops = cpu_ops(supported_targets().front());
  const OwnedMatrix once = product(*ops, slices, Rounding::kOnce, x);
  const OwnedMatrix twice = product(*ops, slices, Rounding::kTwice, x);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    CHECK(std::equal(once.view().row(i) + 16, once.view().row(i) + 48, twice.view().row(i) + 16));
  }
  const auto exact = cpu_ops(supported_targets().front(), 1, ActivationMode::kFloat);
  CHECK(same_bits(product(*exact, slices, Rounding::kOnce, x).view(), 0,
                  product(*exact, slices, Rounding::kTwice, x).view()));
}

}  // namespace brigade::kernels
