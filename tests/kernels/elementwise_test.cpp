// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/kernels/random_data.h"

namespace brigade::kernels {
namespace {

constexpr std::int64_t kSizes[] = {1, 2, 15, 16, 17, 33, 576, 1000};

/// Largest |a - b| over max(|b|, floor).
double worst_relative(const ConstMatrix& a, const ConstMatrix& b, double floor) {
  double worst = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = 0; k < a.cols; ++k) {
      const double error = std::abs(static_cast<double>(a.row(i)[k]) - b.row(i)[k]);
      if (std::isnan(error)) return 1e30;
      worst = std::max(worst, error / std::max<double>(std::abs(b.row(i)[k]), floor));
    }
  }
  return worst;
}

struct Angles {
  Angles(Random& random, std::int64_t rows, std::int64_t half) : cos(rows, half), sin(rows, half) {
    for (std::size_t i = 0; i < cos.values.size(); ++i) {
      const float angle = random.uniform(-4, 4);
      cos.values[i] = std::cos(angle);
      sin.values[i] = std::sin(angle);
    }
  }
  [[nodiscard]] RopeAngles view() const { return {cos.view(), sin.view()}; }
  OwnedMatrix cos;
  OwnedMatrix sin;
};

}  // namespace

TEST_CASE(
    "rms_norm differs from the reference by its roundings and has the same bits on every target") {
  const auto reference = make_reference_ops(ActivationMode::kInt8);
  const auto scalar = cpu_ops(CpuTarget::kScalar);
  for (const std::int64_t size : kSizes) {
    Random random(3);
    const OwnedMatrix x = random_matrix(random, 5, size, 4);
    const OwnedMatrix weight = random_matrix(random, 1, size);
    OwnedMatrix expected(5, size);
    OwnedMatrix bits(5, size);
    reference->rms_norm(x.view(), weight.values, 1e-5F, expected.view());
    scalar->rms_norm(x.view(), weight.values, 1e-5F, bits.view());
    for (const CpuTarget target : supported_targets()) {
      OwnedMatrix out = x;  // in place
      cpu_ops(target)->rms_norm(out.view(), weight.values, 1e-5F, out.view());
      // Half of the sum's error (size / 16 + 4 steps), then a square root, a division and two
      // products.
      const double steps = 0.5 * (static_cast<double>(size) / 16 + 5) + 5;
      CHECK(worst_relative(out.view(), expected.view(), 1e-30) <= steps * kEpsilon);
      CHECK(same_bits(out.view(), 0, bits.view()));
    }
  }
}

TEST_CASE(
    "silu_mul is within a few ulp of the reference over the whole range, the same bits "
    "everywhere") {
  const auto reference = make_reference_ops(ActivationMode::kInt8);
  const auto scalar = cpu_ops(CpuTarget::kScalar);
  for (const std::int64_t size : kSizes) {
    Random random(5);
    OwnedMatrix gate_up = random_matrix(random, 4, 2 * size, 8);
    for (std::int64_t k = 0; k < size; ++k)
      gate_up.view().row(1)[k] = random.uniform(-86, 100);
    for (std::int64_t k = 0; k < size; ++k)
      gate_up.view().row(2)[k] = random.uniform(-1e-3F, 1e-3F);
    OwnedMatrix expected(4, size);
    OwnedMatrix bits(4, size);
    reference->silu_mul(gate_up.view(), expected.view());
    scalar->silu_mul(gate_up.view(), bits.view());
    for (const CpuTarget target : supported_targets()) {
      OwnedMatrix out(4, size);
      cpu_ops(target)->silu_mul(gate_up.view(), out.view());
      // e^x within 2 ulp (4 roundings) and its argument reduction, a sum, a division, a product.
      CHECK(worst_relative(out.view(), expected.view(), 1e-30) <= 10 * kEpsilon);
      CHECK(same_bits(out.view(), 0, bits.view()));
    }
  }
}

TEST_CASE("silu_mul stays finite and near zero for very negative gates") {
  for (const CpuTarget target : supported_targets()) {
    OwnedMatrix gate_up(1, 40);
    for (std::size_t i = 0; i < 20; ++i) {
      gate_up.values[i] = -80.0F - 100.0F * static_cast<float>(i * i);
      gate_up.values[20 + i] = 1.0F;
    }
    OwnedMatrix out(1, 20);
    cpu_ops(target)->silu_mul(gate_up.view(), out.view());
    for (const float x : out.values)
      CHECK(std::abs(x) <= 1e-30F);
  }
}

TEST_CASE("an element's bits do not depend on its place in a row") {
  for (const CpuTarget target : supported_targets()) {
    const auto ops = cpu_ops(target);
    Random random(9);
    for (std::int64_t size = 1; size <= 40; ++size) {
      const float gate = random.uniform(-20, 20);
      const float up = random.uniform(-2, 2);
      OwnedMatrix gate_up(1, 2 * size);
      for (std::int64_t k = 0; k < size; ++k) {
        gate_up.values[static_cast<std::size_t>(k)] = gate;
        gate_up.values[static_cast<std::size_t>(size + k)] = up;
      }
      OwnedMatrix out(1, size);
      ops->silu_mul(gate_up.view(), out.view());
      for (const float x : out.values)
        CHECK(x == out.values[0]);
    }
  }
}

TEST_CASE("rope rotates pairs, adjacent or half a head apart, and leaves other dimensions alone") {
  struct Shape {
    std::int64_t heads, head_dim, half;
  };
  const auto reference = make_reference_ops(ActivationMode::kInt8);
  const auto scalar = cpu_ops(CpuTarget::kScalar);
  for (const Shape shape : {Shape{9, 64, 32}, Shape{3, 128, 64}, Shape{2, 16, 8}, Shape{1, 80, 40},
                            Shape{4, 96, 16}, Shape{2, 40, 5}}) {
    for (const bool adjacent : {true, false}) {
      CAPTURE(shape.head_dim);
      CAPTURE(adjacent);
      Random random(15);
      const OwnedMatrix x = random_matrix(random, 7, shape.heads * shape.head_dim);
      const Angles angles(random, 7, shape.half);
      OwnedMatrix expected = x;
      OwnedMatrix bits = x;
      reference->rope(expected.view(), shape.heads, shape.head_dim, adjacent, angles.view());
      scalar->rope(bits.view(), shape.heads, shape.head_dim, adjacent, angles.view());
      for (const CpuTarget target : supported_targets()) {
        OwnedMatrix out = x;
        cpu_ops(target)->rope(out.view(), shape.heads, shape.head_dim, adjacent, angles.view());
        // Two roundings of terms of magnitude at most 1, relative to 1.
        CHECK(worst_relative(out.view(), expected.view(), 1) <= 3 * kEpsilon);
        CHECK(same_bits(out.view(), 0, bits.view()));
        for (std::int64_t d = 2 * shape.half; d < shape.head_dim; ++d) {
          CHECK(out.view().row(6)[d] == x.view().row(6)[d]);
        }
      }
    }
  }
}

TEST_CASE("add is exact, also with other strides") {
  for (const CpuTarget target : supported_targets()) {
    for (const std::int64_t size : kSizes) {
      Random random(21);
      OwnedMatrix x = random_matrix(random, 3, size);
      const OwnedMatrix y = random_matrix(random, 3, size);
      OwnedMatrix wide(3, size, /*padding=*/5);
      for (std::int64_t i = 0; i < 3; ++i) {
        std::copy(x.view().row(i), x.view().row(i) + size, wide.view().row(i));
      }
      cpu_ops(target)->add(wide.view(), y.view());
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int64_t k = 0; k < size; ++k) {
          CHECK(wide.view().row(i)[k] == x.view().row(i)[k] + y.view().row(i)[k]);
        }
      }
    }
  }
}

TEST_CASE("thread counts do not change a bit of elementwise ops") {
  Random random(25);
  const OwnedMatrix x = random_matrix(random, 67, 1152, 3);
  const OwnedMatrix weight = random_matrix(random, 1, 1152);
  const auto one = cpu_ops(supported_targets().back());
  OwnedMatrix norm(67, 1152);
  OwnedMatrix silu(67, 576);
  one->rms_norm(x.view(), weight.values, 1e-6F, norm.view());
  one->silu_mul(x.view(), silu.view());
  for (const int threads : {2, 3}) {
    const auto ops = cpu_ops(supported_targets().back(), threads);
    OwnedMatrix out(67, 1152);
    ops->rms_norm(x.view(), weight.values, 1e-6F, out.view());
    CHECK(same_bits(out.view(), 0, norm.view()));
    OwnedMatrix half(67, 576);
    ops->silu_mul(x.view(), half.view());
    CHECK(same_bits(half.view(), 0, silu.view()));
  }
}

}  // namespace brigade::kernels
