// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/random_data.h"

namespace brigade::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<LogitSum> sums_of(Ops& ops, const OwnedMatrix& logits) {
  std::vector<LogitSum> sums(static_cast<std::size_t>(logits.rows));
  ops.log_sum(logits.view(), sums);
  return sums;
}

bool same_sum(const LogitSum& a, const LogitSum& b) {
  return a.peak == b.peak && a.sum == b.sum && a.finite == b.finite;
}

}  // namespace

TEST_CASE("log_sum is at the reference for any width, the same bits on every target and thread") {
  const auto reference = make_reference_ops(ActivationMode::kFloat);
  const auto scalar = cpu_ops(CpuTarget::kScalar);
  for (const std::int64_t size : {1, 15, 16, 17, 255, 256, 257, 1000, 49'152}) {
    Random random(7);
    OwnedMatrix logits = random_matrix(random, 5, size, 20);
    for (std::int64_t n = 0; n < size; ++n)
      logits.view().row(4)[n] -= 300;  // far below zero, and below its own peak
    const auto expected = sums_of(*reference, logits);
    const auto bits = sums_of(*scalar, logits);
    for (const CpuTarget target : supported_targets()) {
      for (const int threads : {1, 3}) {
        const auto sums = sums_of(*cpu_ops(target, threads), logits);
        for (std::size_t i = 0; i < sums.size(); ++i) {
          CHECK(sums[i].peak == expected[i].peak);
          CHECK(sums[i].finite);
          // Each power is off by a few steps, and so are the 16 + 4 additions of a tile.
          CHECK(std::abs(sums[i].sum / expected[i].sum - 1) <= 30 * kEpsilon);
          CHECK(same_sum(sums[i], bits[i]));
        }
      }
    }
  }
}

TEST_CASE("log_sum tells rows with an infinity or a NaN, wherever it is") {
  for (const CpuTarget target : supported_targets()) {
    const auto ops = cpu_ops(target);
    for (const std::int64_t at : {0, 15, 16, 299, 300}) {
      for (const float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
        Random random(8);
        OwnedMatrix logits = random_matrix(random, 3, 301, 5);
        logits.view().row(1)[at] = bad;
        const auto sums = sums_of(*ops, logits);
        CHECK(sums[0].finite);
        CHECK_FALSE(sums[1].finite);
        CHECK(sums[2].finite);
      }
    }
  }
}

TEST_CASE("score gives the bits of linear, soft_cap and log_sum, for all forms and threads") {
  for (const CpuTarget target : supported_targets()) {
    for (const TensorType type : kAllTypes) {
      for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kFloat}) {
        for (const std::int64_t tokens : {1, 7, 150}) {
          const bool slow = target == CpuTarget::kScalar && tokens > 7;
          if (slow && type != TensorType::kQ4_1) continue;
          CAPTURE(type_name(type));
          CAPTURE(tokens);
          constexpr std::int64_t kVocab = 597;  // tiles of 256, 256 and 85
          Random random(9);
          const OwnedTensor tensor(random, type, kVocab, 96);
          const OwnedMatrix x = random_matrix(random, tokens, 96, 2);
          std::vector<std::int32_t> targets;
          for (std::int64_t i = 0; i < tokens; ++i)
            targets.push_back(static_cast<std::int32_t>(random.below(kVocab + 200)) - 100);
          for (const Rounding rounding : {Rounding::kOnce, Rounding::kTwice}) {
            for (const float cap : {0.0F, 30.0F}) {
              const auto ops = cpu_ops(target, /*threads=*/2, mode);
              const std::vector<WeightSlice> slices = {tensor.all()};
              const auto weight = std::move(ops->pack(slices, rounding)).value();
              OwnedMatrix logits(tokens, kVocab);
              ops->linear(*weight, x.view(), logits.view());
              if (cap > 0) ops->soft_cap(logits.view(), cap);
              const auto expected = sums_of(*ops, logits);
              std::vector<LogitSum> sums(expected.size());
              ops->score(*weight, x.view(), cap, targets, sums);
              for (std::size_t i = 0; i < sums.size(); ++i) {
                CHECK(same_sum(sums[i], expected[i]));
                const bool there = targets[i] >= 0 && targets[i] < kVocab;
                const float* row = logits.view().row(static_cast<std::int64_t>(i));
                CHECK(sums[i].target == (there ? row[targets[i]] : -kInf));
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace brigade::kernels
