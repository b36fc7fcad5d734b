// SPDX-License-Identifier: Apache-2.0
// What the CPU kernels reach of this machine's limits, on one thread: each line gives a rate and
// its share of a limit sampled in turn with it (the best sample of each). Shapes are
// SmolLM2-135M's.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/checks.h"
#include "kernels/cpu/target.h"
#include "tests/bench/peak_rates.h"
#include "tests/kernels/random_data.h"

namespace brigade::bench {
namespace {

using namespace kernels;  // NOLINT: a program of its own

constexpr auto kQ4_1 = TensorType::kQ4_1;
constexpr auto kQ8_0 = TensorType::kQ8_0;
constexpr std::int64_t kHidden = 576;
constexpr std::int64_t kIntermediate = 1536;
constexpr std::int64_t kLayers = 30;

/// Best rates of work and limit, sampled in turn. `work` returns what it did (bytes or operations).
template <typename Work, typename Limit>
void report(const char* name, const char* unit, int samples, const Work& work, const Limit& limit) {
  double best = 0;
  double best_limit = 0;
  for (int i = 0; i < samples; ++i) {
    const double start = thread_seconds();
    const double done = work();
    best = std::max(best, done / (thread_seconds() - start) * 1e-9);
    best_limit = std::max(best_limit, limit());
  }
  std::printf("  %-34s %8.1f %s   %5.2f of %.1f\n", name, best, unit, best / best_limit,
              best_limit);
}

struct Layer {
  std::unique_ptr<Weight> weight;
  OwnedMatrix x;
  OwnedMatrix out;
};

std::unique_ptr<Weight> random_weight(Ops& ops, model::TensorType type, std::int64_t rows,
                                      std::int64_t cols) {
  Random random(static_cast<std::uint64_t>(rows));
  const OwnedTensor tensor(random, type, rows, cols);
  return kernels::pack(ops, {tensor.all()});
}

/// All matrices of the model in the order a token meets them, as in decoding: nothing stays in a
/// cache for long.
void bench_decode(CpuTarget target, std::int64_t tokens) {
  const auto ops = cpu_ops(target);
  Random random(1);
  std::vector<Layer> layers;
  std::size_t bytes = 0;
  const auto append = [&](model::TensorType type, std::int64_t rows, std::int64_t cols) {
    layers.push_back({random_weight(*ops, type, rows, cols), random_matrix(random, tokens, cols),
                      OwnedMatrix(tokens, rows)});
    bytes += layers.back().weight->bytes();
  };
  for (std::int64_t i = 0; i < kLayers; ++i) {
    append(kQ4_1, 960, kHidden);
    append(kQ4_1, kHidden, kHidden);
    append(kQ4_1, 2 * kIntermediate, kHidden);
    append(kQ4_1, kHidden, kIntermediate);
  }
  append(kQ8_0, 49152, kHidden);
  const std::vector<std::byte> copy(bytes, std::byte{1});
  const std::string name = "decode, all matrices, M = " + std::to_string(tokens);
  report(
      name.c_str(), "GB/s  ", 20,
      [&] {
        for (Layer& layer : layers)
          ops->linear(*layer.weight, layer.x.view(), layer.out.view());
        return static_cast<double>(bytes);
      },
      [&] { return sample_read(copy.data(), copy.size()); });
}

void bench_product(CpuTarget target, model::TensorType type, std::int64_t rows, std::int64_t cols,
                   std::int64_t tokens, const char* what) {
  const auto ops = cpu_ops(target);
  Random random(2);
  const auto weight = random_weight(*ops, type, rows, cols);
  OwnedMatrix x = random_matrix(random, tokens, cols);
  OwnedMatrix out(tokens, rows);
  const bool int8 = is_quantized(format_of(type).form);
  const std::string name = std::string(what) + " " + std::to_string(rows) + "x" +
                           std::to_string(cols) + " M = " + std::to_string(tokens);
  const double operations = 2.0 * static_cast<double>(rows * cols * tokens);
  const int repeats = static_cast<int>(std::max(1.0, 1e8 / operations));
  report(
      name.c_str(), int8 ? "Gop/s " : "GFLOP/s", 20,
      [&] {
        for (int i = 0; i < repeats; ++i)
          ops->linear(*weight, x.view(), out.view());
        return operations * repeats;
      },
      [&] { return int8 ? sample_int8_operations(target) : sample_float_operations(target); });
}

void bench_attention(CpuTarget target, std::int64_t queries, std::int64_t context) {
  const KvShape shape{1, 3, 64, KvType::kF16};
  const auto ops = cpu_ops(target);
  Random random(3);
  const std::int64_t blocks = (context + kBlockSize - 1) / kBlockSize;
  const auto cache = std::move(ops->make_kv_cache(shape, blocks)).value();
  const OwnedMatrix keys = random_matrix(random, context, 192);
  std::vector<std::int32_t> slots;
  std::vector<std::int32_t> table;
  for (std::int32_t i = 0; i < context; ++i)
    slots.push_back(i);
  for (std::int32_t i = 0; i < blocks; ++i)
    table.push_back(i);
  ops->write_kv(*cache, 0, keys.view(), keys.view(), slots);
  const OwnedMatrix q = random_matrix(random, queries, 576);
  OwnedMatrix out(queries, 576);
  const std::vector<std::int32_t> cu_q = {0, static_cast<std::int32_t>(queries)};
  const std::vector<std::int32_t> lens = {static_cast<std::int32_t>(context)};
  const std::vector<std::int32_t> cu_blocks = {0, static_cast<std::int32_t>(blocks)};
  const AttentionBatch batch{cu_q, lens, cu_blocks, table};
  const double scores =
      9.0 * static_cast<double>(queries) * (static_cast<double>(context) - (queries - 1) / 2.0);
  const int repeats = static_cast<int>(std::max(1.0, 2e7 / (scores * 256)));
  const std::string name =
      "attention, " + std::to_string(queries) + " of " + std::to_string(context) + " tokens";
  report(
      name.c_str(), "GFLOP/s", 20,
      [&] {
        for (int i = 0; i < repeats; ++i) {
          ops->attention(*cache, 0, q.view(), batch, {.scale = 0.125F}, out.view());
        }
        return scores * 256 * repeats;
      },
      [&] { return sample_float_operations(target); });
}

void bench_elementwise(CpuTarget target) {
  const auto ops = cpu_ops(target);
  Random random(4);
  OwnedMatrix x = random_matrix(random, 64, 576);
  OwnedMatrix gate_up = random_matrix(random, 64, 3072);
  OwnedMatrix out(64, 1536);
  OwnedMatrix norm(64, 576);
  const OwnedMatrix weight = random_matrix(random, 1, 576);
  const OwnedMatrix cos = random_matrix(random, 64, 32);
  const auto time = [&](const char* name, double elements, auto work) {
    double best = 1e9;
    for (int i = 0; i < 20; ++i) {
      const double start = thread_seconds();
      for (int n = 0; n < 20; ++n)
        work();
      best = std::min(best, (thread_seconds() - start) / 20);
    }
    std::printf("  %-34s %8.2f ns an element\n", name, best / elements * 1e9);
  };
  time("rms_norm", 64 * 576, [&] { ops->rms_norm(x.view(), weight.values, 1e-5F, norm.view()); });
  time("silu_mul", 64 * 1536,
       [&] { ops->gate(model::Activation::kSilu, gate_up.view(), out.view()); });
  time("rope, adjacent", 64 * 576, [&] {
    ops->rope(x.view(), 9, 64, /*adjacent=*/true, {cos.view(), cos.view()});
  });
  time("add", 64 * 576, [&] { ops->add(norm.view(), x.view()); });
}

void bench_target(CpuTarget target) {
  std::printf("%s\n", std::string(to_string(target)).c_str());
  for (const std::int64_t tokens : {1, 2, 4, 8, 16})
    bench_decode(target, tokens);
  for (const std::int64_t tokens : {16, 512}) {
    bench_product(target, kQ4_1, 960, 576, tokens, "4 bits + min");
    bench_product(target, kQ4_1, 3072, 576, tokens, "4 bits + min");
    bench_product(target, kQ4_1, 576, 1536, tokens, "4 bits + min");
    bench_product(target, kQ8_0, 4096, 576, tokens, "8 bits");
    bench_product(target, model::TensorType::kF16, 960, 576, tokens, "f16");
    bench_product(target, model::TensorType::kBF16, 960, 576, tokens, "bf16");
    bench_product(target, model::TensorType::kF32, 960, 576, tokens, "f32");
  }
  bench_attention(target, 1, 80);
  bench_attention(target, 1, 1024);
  bench_attention(target, 512, 512);
  bench_elementwise(target);
}

}  // namespace
}  // namespace brigade::bench

int main(int argc, char** argv) {
  for (const brigade::kernels::CpuTarget target : brigade::kernels::supported_targets()) {
    const std::string_view name = to_string(target);
    if (argc > 1 ? name == argv[1] : target != brigade::kernels::CpuTarget::kScalar) {
      brigade::bench::bench_target(target);
    }
  }
  return 0;
}
