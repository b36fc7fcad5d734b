// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/random_data.h"

namespace brigade::kernels {
namespace {

constexpr auto kSilu = model::Activation::kSilu;
constexpr auto kGelu = model::Activation::kGelu;

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
    "gating is within a few ulp of the reference over the whole range, the same bits everywhere") {
  const auto reference = make_reference_ops(ActivationMode::kInt8);
  const auto scalar = cpu_ops(CpuTarget::kScalar);
  for (const model::Activation activation : {kSilu, kGelu}) {
    for (const std::int64_t size : kSizes) {
      Random random(5);
      OwnedMatrix gate_up = random_matrix(random, 4, 2 * size, 8);
      // gelu(x) falls as e^(-x^2 / 2): below -5 its tanh form is rounding itself.
      const float lowest = activation == kSilu ? -86.0F : -5.0F;
      for (float& x : gate_up.values)
        x = std::max(x, lowest);
      for (std::int64_t k = 0; k < size; ++k)
        gate_up.view().row(1)[k] = random.uniform(lowest, 100);
      for (std::int64_t k = 0; k < size; ++k)
        gate_up.view().row(2)[k] = random.uniform(-1e-3F, 1e-3F);
      OwnedMatrix expected(4, size);
      OwnedMatrix bits(4, size);
      reference->gate(activation, gate_up.view(), expected.view());
      scalar->gate(activation, gate_up.view(), bits.view());
      // e^x within 2 ulp (4 roundings) and its argument reduction, a sum, a division, a product;
      // gelu's argument, up to 16, carries 4 roundings more, which e^x multiplies by it.
      const double steps = activation == kSilu ? 10 : 10 + 16 * 4;
      for (const CpuTarget target : supported_targets()) {
        OwnedMatrix out(4, size);
        cpu_ops(target)->gate(activation, gate_up.view(), out.view());
        CHECK(worst_relative(out.view(), expected.view(), 1e-30) <= steps * kEpsilon);
        CHECK(same_bits(out.view(), 0, bits.view()));
      }
    }
  }
}

TEST_CASE("a soft cap is within a few ulp of the reference, and never above the cap") {
  const auto reference = make_reference_ops(ActivationMode::kInt8);
  const auto scalar = cpu_ops(CpuTarget::kScalar);
  for (const std::int64_t size : kSizes) {
    for (const float spread : {1e-3F, 1.0F, 30.0F, 1e6F}) {
      Random random(31);
      const OwnedMatrix x = random_matrix(random, 3, size, spread);
      OwnedMatrix expected = x;
      OwnedMatrix bits = x;
      reference->soft_cap(expected.view(), 30);
      scalar->soft_cap(bits.view(), 30);
      for (const CpuTarget target : supported_targets()) {
        OwnedMatrix out = x;
        cpu_ops(target)->soft_cap(out.view(), 30);
        CHECK(worst_relative(out.view(), expected.view(), 1e-30) <= 8 * kEpsilon);
        CHECK(same_bits(out.view(), 0, bits.view()));
        for (const float y : out.values)
          CHECK(std::abs(y) <= 30);
      }
    }
  }
}

TEST_CASE("gating stays finite and near zero for very negative gates") {
  for (const CpuTarget target : supported_targets()) {
    OwnedMatrix gate_up(1, 40);
    for (std::size_t i = 0; i < 20; ++i) {
      gate_up.values[i] = -80.0F - 100.0F * static_cast<float>(i * i);
      gate_up.values[20 + i] = 1.0F;
    }
    OwnedMatrix out(1, 20);
    cpu_ops(target)->gate(kSilu, gate_up.view(), out.view());
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
      ops->gate(kSilu, gate_up.view(), out.view());
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

TEST_CASE("heads are normed one by one, as rows of their size are") {
  for (const CpuTarget target : supported_targets()) {
    const auto ops = cpu_ops(target);
    for (const std::int64_t head_dim : {16, 40, 256}) {
      Random random(33);
      OwnedMatrix x = random_matrix(random, 5, 3 * head_dim, 4);
      const OwnedMatrix weight = random_matrix(random, 1, head_dim);
      OwnedMatrix heads(15, head_dim);
      heads.values = x.values;
      ops->rms_norm(heads.view(), weight.values, 1e-6F, heads.view());
      ops->head_norm(x.view(), weight.values, 1e-6F);
      CHECK(x.values == heads.values);
    }
  }
}

TEST_CASE("rows are cleared, scaled, given a bias, gathered and scattered exactly") {
  for (const CpuTarget target : supported_targets()) {
    const auto ops = cpu_ops(target, 2);
    for (const std::int64_t size : kSizes) {
      Random random(35);
      const OwnedMatrix x = random_matrix(random, 40, size);
      const OwnedMatrix bias = random_matrix(random, 1, size);
      const std::vector<std::int32_t> rows = {39, 0, 7};
      const std::vector<float> weights = {0.25F, -2, 1};
      OwnedMatrix part(3, size);
      ops->gather_rows(x.view(), rows, part.view());
      OwnedMatrix sum = x;
      ops->add_bias(sum.view(), bias.values);
      ops->scatter_add(part.view(), rows, weights, sum.view());
      OwnedMatrix scaled = x;
      ops->scale(scaled.view(), 3);
      OwnedMatrix cleared(40, size);
      std::fill(cleared.values.begin(), cleared.values.end(), NAN);
      ops->clear(cleared.view());
      bool same = true;
      for (std::int64_t i = 0; i < 40; ++i) {
        const auto place = std::find(rows.begin(), rows.end(), i) - rows.begin();
        for (std::int64_t k = 0; k < size; ++k) {
          const float value = x.view().row(i)[k];
          float expected = value + bias.values[static_cast<std::size_t>(k)];
          if (place < 3)
            expected = std::fma(weights[static_cast<std::size_t>(place)], value, expected);
          same = same && sum.view().row(i)[k] == expected && scaled.view().row(i)[k] == 3 * value &&
                 cleared.view().row(i)[k] == 0;
        }
      }
      CHECK(same);
    }
  }
}

TEST_CASE("routing takes the largest logits, the lower expert of equals, and shares 1 among them") {
  const auto ops = cpu_ops(supported_targets().back());
  OwnedMatrix logits(2, 5);
  logits.values = {1, 3, 3, -1, 3, 0, 0, 0, 0, 0};
  std::vector<std::int32_t> experts(4);
  std::vector<float> weights(4);
  model::ExpertSpec spec{.num_experts = 5, .num_used = 2};
  ops->route(spec, logits.view(), experts, weights);
  CHECK(experts == std::vector<std::int32_t>{1, 2, 0, 1});
  CHECK(weights == std::vector<float>{0.5F, 0.5F, 0.5F, 0.5F});
  spec.normalized = false;
  spec.scale = 2;
  ops->route(spec, logits.view(), experts, weights);
  CHECK(weights[3] == doctest::Approx(2.0 / 5));
  CHECK(weights[0] == doctest::Approx(2 / (3 + std::exp(-2.0) + std::exp(-4.0))));
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
  one->gate(kSilu, x.view(), silu.view());
  for (const int threads : {2, 3}) {
    const auto ops = cpu_ops(supported_targets().back(), threads);
    OwnedMatrix out(67, 1152);
    ops->rms_norm(x.view(), weight.values, 1e-6F, out.view());
    CHECK(same_bits(out.view(), 0, norm.view()));
    OwnedMatrix half(67, 576);
    ops->gate(kSilu, x.view(), half.view());
    CHECK(same_bits(half.view(), 0, silu.view()));
  }
}

}  // namespace brigade::kernels
