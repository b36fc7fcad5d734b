// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "kernels/checks.h"
#include "kernels/cpu/attention_op.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kv_cache.h"
#include "kernels/cpu/linear_op.h"
#include "kernels/cpu/packed_weight.h"
#include "kernels/cpu/score_op.h"
#include "kernels/cpu/target.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/op.h"
#include "kernels/route.h"
#include "kernels/weight_format.h"

namespace brigade::kernels {
namespace {

/// Elements of an elementwise op below which a fork does not pay.
constexpr std::int64_t kMinForkElements = 16 * 1024;

class CpuOps final : public Ops {
 public:
  CpuOps(const CpuOptions& options, CpuTarget target)
      : pool_({.num_threads = options.num_threads,
               .pin = options.pin,
               .first_cpu = options.first_cpu,
               .spin = options.spin}),
        elementwise_(elementwise_kernels(target)),
        linear_(linear_kernels(target), options.activations, pool_),
        score_(elementwise_, linear_),
        attention_(attention_kernels(target), pool_),
        keys_(static_cast<std::size_t>(options.num_threads)) {}

  Result<std::unique_ptr<Weight>> pack(std::span<const WeightSlice> slices,
                                       Rounding rounding) override;
  Result<std::unique_ptr<KvCache>> make_kv_cache(const KvShape& shape,
                                                 std::int64_t num_blocks) override;
  void embed(const Weight& table, std::int64_t first_row, std::span<const std::int32_t> tokens,
             Matrix out) override;
  void rms_norm(ConstMatrix x, std::span<const float> weight, float eps, Matrix out) override;
  void head_norm(Matrix x, std::span<const float> weight, float eps) override;
  void linear(const Weight& w, ConstMatrix x, Matrix out) override;
  void rope(Matrix x, std::int64_t num_heads, std::int64_t head_dim, bool adjacent,
            const RopeAngles& angles) override;
  void write_kv(KvCache& cache, std::int64_t layer, ConstMatrix k, ConstMatrix v,
                std::span<const std::int32_t> slot_mapping) override;
  void copy_block(KvCache& cache, std::int64_t from, std::int64_t to) override;
  void attention(const KvCache& cache, std::int64_t layer, ConstMatrix q,
                 const AttentionBatch& batch, const AttentionParams& params, Matrix out) override;
  void gate(model::Activation activation, ConstMatrix gate_up, Matrix out) override;
  void add(Matrix x, ConstMatrix y) override;
  void add_bias(Matrix x, std::span<const float> bias) override;
  void clear(Matrix x) override;
  void scale(Matrix x, float factor) override;
  void soft_cap(Matrix x, float cap) override;
  void log_sum(ConstMatrix logits, std::span<LogitSum> out) override;
  void score(const Weight& w, ConstMatrix x, float soft_cap, std::span<const std::int32_t> targets,
             std::span<LogitSum> out) override;
  void route(const model::ExpertSpec& spec, ConstMatrix logits, std::span<std::int32_t> experts,
             std::span<float> weights) override;
  void gather_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix out) override;
  void scatter_add(ConstMatrix x, std::span<const std::int32_t> rows,
                   std::span<const float> weights, Matrix out) override;

 private:
  /// body(row, thread) for every row, on this thread alone when `rows` x `cols` is little.
  template <typename Body>
  void for_each_row(std::int64_t rows, std::int64_t cols, const Body& body) {
    const FlushDenormals flush;
    const int threads = rows * cols < kMinForkElements ? 1 : pool_.num_threads();
    const auto share = [&](int thread) {
      const std::int64_t end = rows * (thread + 1) / threads;
      for (std::int64_t i = rows * thread / threads; i < end; ++i)
        body(i, thread);
    };
    if (threads == 1) {
      share(0);
    } else {
      pool_.run(share);
    }
  }

  ThreadPool pool_;
  Arena arena_;
  ElementwiseKernels elementwise_;
  LinearOp linear_;
  ScoreOp score_;
  AttentionOp attention_;
  std::vector<ScratchBuffer> keys_;  // [threads]: a token's keys in f16
};

Result<std::unique_ptr<Weight>> CpuOps::pack(std::span<const WeightSlice> slices,
                                             Rounding rounding) {
  RETURN_IF_ERROR(check_slices(slices));
  return PackedWeight::pack(slices, rounding, arena_, pool_);
}

Result<std::unique_ptr<KvCache>> CpuOps::make_kv_cache(const KvShape& shape,
                                                       std::int64_t num_blocks) {
  RETURN_IF_ERROR(check_kv_shape(shape, num_blocks));
  const std::size_t bytes = shape.block_bytes() * static_cast<std::size_t>(num_blocks);
  std::unique_ptr<Mapping> memory = Mapping::create(bytes);
  if (memory == nullptr) {
    return resource_exhausted("no memory for a KV cache of " + std::to_string(bytes) + " bytes");
  }
  return std::unique_ptr<KvCache>(
      std::make_unique<CpuKvCache>(shape, num_blocks, std::move(memory)));
}

void CpuOps::embed(const Weight& table, std::int64_t first_row,
                   std::span<const std::int32_t> tokens, Matrix out) {
  check_embed(table, tokens, out);
  const auto& weight = static_cast<const PackedWeight&>(table);
  for_each_row(out.rows, out.cols, [&](std::int64_t i, int /*thread*/) {
    const std::int64_t row = tokens[static_cast<std::size_t>(i)] - first_row;
    if (row >= 0 && row < weight.rows()) {
      weight.unpack_row(row, out.row(i));
    } else {
      std::fill(out.row(i), out.row(i) + out.cols, 0.0F);
    }
  });
}

void CpuOps::rms_norm(ConstMatrix x, std::span<const float> weight, float eps, Matrix out) {
  check_rms_norm(x, weight, out);
  for_each_row(x.rows, x.cols, [&](std::int64_t i, int /*thread*/) {
    elementwise_.rms_norm(x.row(i), weight.data(), x.cols, eps, out.row(i));
  });
}

void CpuOps::head_norm(Matrix x, std::span<const float> weight, float eps) {
  check_head_norm(x, weight);
  const auto head_dim = static_cast<std::int64_t>(weight.size());
  for_each_row(x.rows, x.cols, [&](std::int64_t i, int /*thread*/) {
    for (float* head = x.row(i); head < x.row(i) + x.cols; head += head_dim)
      elementwise_.rms_norm(head, weight.data(), head_dim, eps, head);
  });
}

void CpuOps::linear(const Weight& w, ConstMatrix x, Matrix out) {
  check_linear(w, x, out);
  const FlushDenormals flush;
  linear_.run(static_cast<const PackedWeight&>(w), x, out);
}

void CpuOps::rope(Matrix x, std::int64_t num_heads, std::int64_t head_dim, bool adjacent,
                  const RopeAngles& angles) {
  check_rope(x, num_heads, head_dim, angles);
  for_each_row(x.rows, x.cols, [&](std::int64_t i, int /*thread*/) {
    elementwise_.rope(x.row(i), num_heads, head_dim, adjacent, angles.cos.row(i), angles.sin.row(i),
                      angles.cos.cols);
  });
}

/// Scatters a token's keys to [kv head][head_dim][16 tokens], values to [kv head][16
/// tokens][head_dim].
template <typename T>
void place_token(const T* k, const T* v, const KvShape& shape, std::int64_t offset, T* page) {
  const std::int64_t size = shape.num_kv_heads * shape.head_dim;
  for (std::int64_t i = 0; i < size; ++i)
    page[i * kBlockSize + offset] = k[i];
  T* values = page + size * kBlockSize;
  for (std::int64_t h = 0; h < shape.num_kv_heads; ++h) {
    std::memcpy(values + (h * kBlockSize + offset) * shape.head_dim, v + h * shape.head_dim,
                static_cast<std::size_t>(shape.head_dim) * sizeof(T));
  }
}

void CpuOps::write_kv(KvCache& cache, std::int64_t layer, ConstMatrix k, ConstMatrix v,
                      std::span<const std::int32_t> slot_mapping) {
  check_write_kv(cache, layer, k, v, slot_mapping);
  const auto& store = static_cast<const CpuKvCache&>(cache);
  const KvShape& shape = store.shape();
  for_each_row(k.rows, 2 * k.cols, [&](std::int64_t i, int thread) {
    const std::int32_t slot = slot_mapping[static_cast<std::size_t>(i)];
    std::byte* page = store.layer(layer) + slot / kBlockSize * store.page_bytes();
    const std::int64_t offset = slot % kBlockSize;
    if (shape.type == KvType::kF32) {
      return place_token(k.row(i), v.row(i), shape, offset, reinterpret_cast<float*>(page));
    }
    auto* halves =
        reinterpret_cast<std::uint16_t*>(keys_[static_cast<std::size_t>(thread)].bytes(4 * k.cols));
    elementwise_.to_f16(k.row(i), k.cols, halves);
    elementwise_.to_f16(v.row(i), k.cols, halves + k.cols);
    place_token<std::uint16_t>(halves, halves + k.cols, shape, offset,
                               reinterpret_cast<std::uint16_t*>(page));
  });
}

void CpuOps::copy_block(KvCache& cache, std::int64_t from, std::int64_t to) {
  check_copy_block(cache, from, to);
  const auto& store = static_cast<const CpuKvCache&>(cache);
  for (std::int64_t layer = 0; layer < store.shape().num_layers; ++layer) {
    std::memcpy(store.layer(layer) + to * store.page_bytes(),
                store.layer(layer) + from * store.page_bytes(),
                static_cast<std::size_t>(store.page_bytes()));
  }
}

void CpuOps::attention(const KvCache& cache, std::int64_t layer, ConstMatrix q,
                       const AttentionBatch& batch, const AttentionParams& params, Matrix out) {
  check_attention(cache, layer, q, batch, params, out);
  const FlushDenormals flush;
  attention_.run(static_cast<const CpuKvCache&>(cache), layer, q, batch, params, out);
}

void CpuOps::gate(model::Activation activation, ConstMatrix gate_up, Matrix out) {
  check_gate(gate_up, out);
  const auto mul =
      activation == model::Activation::kSilu ? elementwise_.silu_mul : elementwise_.gelu_mul;
  for_each_row(out.rows, out.cols, [&](std::int64_t i, int /*thread*/) {
    mul(gate_up.row(i), gate_up.row(i) + out.cols, out.cols, out.row(i));
  });
}

void CpuOps::add(Matrix x, ConstMatrix y) {
  check_add(x, y);
  for_each_row(x.rows, x.cols, [&](std::int64_t i, int /*thread*/) {
    elementwise_.add(x.row(i), y.row(i), x.cols);
  });
}

void CpuOps::add_bias(Matrix x, std::span<const float> bias) {
  check_add_bias(x, bias);
  for_each_row(x.rows, x.cols, [&](std::int64_t i, int /*thread*/) {
    elementwise_.add(x.row(i), bias.data(), x.cols);
  });
}

void CpuOps::clear(Matrix x) {
  for_each_row(x.rows, x.cols, [&](std::int64_t i, int /*thread*/) {
    std::fill(x.row(i), x.row(i) + x.cols, 0.0F);
  });
}

void CpuOps::scale(Matrix x, float factor) {
  for_each_row(x.rows, x.cols, [&](std::int64_t i, int /*thread*/) {
    elementwise_.scale(x.row(i), factor, x.cols);
  });
}

void CpuOps::soft_cap(Matrix x, float cap) {
  check_soft_cap(x, cap);
  for_each_row(x.rows, x.cols, [&](std::int64_t i, int /*thread*/) {
    elementwise_.soft_cap(x.row(i), cap, x.cols);
  });
}

void CpuOps::log_sum(ConstMatrix logits, std::span<LogitSum> out) {
  check_log_sum(logits, out);
  for_each_row(logits.rows, logits.cols, [&](std::int64_t i, int /*thread*/) {
    out[static_cast<std::size_t>(i)] = score_.log_sum(logits.row(i), logits.cols);
  });
}

void CpuOps::score(const Weight& w, ConstMatrix x, float soft_cap,
                   std::span<const std::int32_t> targets, std::span<LogitSum> out) {
  check_score(w, x, soft_cap, targets, out);
  const FlushDenormals flush;
  score_.run(static_cast<const PackedWeight&>(w), x, soft_cap, targets, out);
}

void CpuOps::route(const model::ExpertSpec& spec, ConstMatrix logits,
                   std::span<std::int32_t> experts, std::span<float> weights) {
  check_route(spec, logits, experts, weights);
  for_each_row(logits.rows, logits.cols, [&](std::int64_t i, int /*thread*/) {
    route_row(spec, logits.row(i), experts.data() + i * spec.num_used,
              weights.data() + i * spec.num_used);
  });
}

void CpuOps::gather_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix out) {
  check_rows(x, rows, out);
  for_each_row(out.rows, out.cols, [&](std::int64_t i, int /*thread*/) {
    const float* from = x.row(rows[static_cast<std::size_t>(i)]);
    std::copy(from, from + x.cols, out.row(i));
  });
}

void CpuOps::scatter_add(ConstMatrix x, std::span<const std::int32_t> rows,
                         std::span<const float> weights, Matrix out) {
  check_rows(out, rows, x);
  INVARIANT_EQ(weights.size(), rows.size());
  for_each_row(x.rows, x.cols, [&](std::int64_t i, int /*thread*/) {
    const auto at = static_cast<std::size_t>(i);
    elementwise_.add_scaled(out.row(rows[at]), weights[at], x.row(i), x.cols);
  });
}

}  // namespace

std::unique_ptr<Ops> make_cpu_ops(const CpuOptions& options, CpuTarget target) {
  return std::make_unique<CpuOps>(options, target);
}

std::unique_ptr<Ops> make_cpu_ops(const CpuOptions& options) {
  return make_cpu_ops(options, chosen_target());
}

}  // namespace brigade::kernels
