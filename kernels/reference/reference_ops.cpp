// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "common/base/check.h"
#include "common/base/float16.h"
#include "kernels/checks.h"
#include "kernels/route.h"
#include "kernels/weight_format.h"

namespace brigade::kernels {
namespace {

/// Rounds a row to int8 in groups of 32 (amax / 127, nearest, ties to even) and gives back what is
/// left of it.
std::vector<double> rounded_to_int8(const float* x, std::int64_t cols) {
  std::vector<double> out(static_cast<std::size_t>(cols));
  for (std::int64_t begin = 0; begin < cols; begin += kGroupSize) {
    float amax = 0;
    for (std::int64_t k = begin; k < begin + kGroupSize; ++k)
      amax = std::max(amax, std::abs(x[k]));
    // Below this 127 / amax would overflow; such a group counts as zeros.
    const float inverse = amax < 1e-30F ? 0.0F : 127.0F / amax;
    for (std::int64_t k = begin; k < begin + kGroupSize; ++k) {
      out[static_cast<std::size_t>(k)] =
          static_cast<double>(amax / 127.0F) * std::nearbyint(x[k] * inverse);
    }
  }
  return out;
}

/// The same with what was left over rounded again.
std::vector<double> rounded_twice(const float* x, std::int64_t cols) {
  std::vector<double> out = rounded_to_int8(x, cols);
  std::vector<float> rest(out.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    rest[i] = static_cast<float>(x[i] - out[i]);
  const std::vector<double> second = rounded_to_int8(rest.data(), cols);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] += second[i];
  return out;
}

double dot(const double* w, const double* x, std::int64_t size) {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i)
    sum += w[i] * x[i];
  return sum;
}

/// x / sqrt(mean(x^2) + eps) * weight; may be in place.
void norm(const float* x, std::span<const float> weight, double eps, float* out) {
  double sum = 0;
  for (std::size_t k = 0; k < weight.size(); ++k)
    sum += static_cast<double>(x[k]) * x[k];
  const double scale = 1 / std::sqrt(sum / static_cast<double>(weight.size()) + eps);
  for (std::size_t k = 0; k < weight.size(); ++k)
    out[k] = static_cast<float>(x[k] * scale * weight[k]);
}

double gated(model::Activation activation, double x) {
  if (activation == model::Activation::kSilu) return x / (1 + std::exp(-x));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double capped(double x, double cap) {
  return cap == 0 ? x : cap * std::tanh(x / cap);
}

/// One head of one row: softmax over all it sees at once.
struct HeadAttention {
  const ReferenceKvCache& cache;
  std::int64_t layer;
  std::span<const std::int32_t> blocks;
  AttentionParams params;

  [[nodiscard]] std::size_t at(std::int64_t token, std::int64_t kv_head) const {
    const std::int64_t block = blocks[static_cast<std::size_t>(token / kBlockSize)];
    return cache.index(layer, block * kBlockSize + token % kBlockSize) +
           static_cast<std::size_t>(kv_head * cache.shape().head_dim);
  }

  void run(const float* q, std::int64_t context, std::int64_t kv_head, float* out) const {
    const std::int64_t head_dim = cache.shape().head_dim;
    const std::int64_t first =
        params.window == 0 ? 0 : std::max<std::int64_t>(0, context - params.window);
    std::vector<double> scores(static_cast<std::size_t>(context));
    double maximum = -std::numeric_limits<double>::infinity();
    for (std::int64_t t = first; t < context; ++t) {
      const float* key = cache.k.data() + at(t, kv_head);
      double score = 0;
      for (std::int64_t d = 0; d < head_dim; ++d)
        score += static_cast<double>(q[d]) * key[d];
      score = capped(score * params.scale, params.soft_cap);
      scores[static_cast<std::size_t>(t)] = score;
      maximum = std::max(maximum, score);
    }
    double sum = 0;
    std::vector<double> mean(static_cast<std::size_t>(head_dim));
    for (std::int64_t t = first; t < context; ++t) {
      const double weight = std::exp(scores[static_cast<std::size_t>(t)] - maximum);
      const float* value = cache.v.data() + at(t, kv_head);
      sum += weight;
      for (std::int64_t d = 0; d < head_dim; ++d)
        mean[static_cast<std::size_t>(d)] += weight * value[d];
    }
    for (std::int64_t d = 0; d < head_dim; ++d) {
      out[d] = static_cast<float>(mean[static_cast<std::size_t>(d)] / sum);
    }
  }
};

class ReferenceOps final : public Ops {
 public:
  explicit ReferenceOps(ActivationMode activations) : activations_(activations) {}

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
  ActivationMode activations_;
};

Result<std::unique_ptr<Weight>> ReferenceOps::pack(std::span<const WeightSlice> slices,
                                                   Rounding rounding) {
  RETURN_IF_ERROR(check_slices(slices));
  const std::int64_t cols = slices[0].cols.size();
  std::int64_t rows = 0;
  for (const WeightSlice& slice : slices)
    rows += slice.rows.size();
  auto weight = std::make_unique<ReferenceWeight>(rows, cols);
  weight->rounding = rounding;
  std::int64_t at = 0;
  for (const WeightSlice& slice : slices) {
    const StoredFormat& format = format_of(slice.tensor->type);
    const SliceReader reader(slice);
    std::vector<std::byte> stored(static_cast<std::size_t>(reader.row_bytes()));
    for (std::int64_t row = 0; row < slice.rows.size(); ++row, ++at) {
      RETURN_IF_ERROR(reader.read({row, row + 1}, stored.data()));
      decode_row(format, stored.data(), reader.skipped_cols(), cols,
                 weight->values.data() + at * cols);
      weight->quantized[static_cast<std::size_t>(at)] = is_quantized(format.form);
    }
  }
  return std::unique_ptr<Weight>(std::move(weight));
}

Result<std::unique_ptr<KvCache>> ReferenceOps::make_kv_cache(const KvShape& shape,
                                                             std::int64_t num_blocks) {
  RETURN_IF_ERROR(check_kv_shape(shape, num_blocks));
  return std::unique_ptr<KvCache>(std::make_unique<ReferenceKvCache>(shape, num_blocks));
}

void ReferenceOps::embed(const Weight& table, std::int64_t first_row,
                         std::span<const std::int32_t> tokens, Matrix out) {
  check_embed(table, tokens, out);
  const auto& weight = static_cast<const ReferenceWeight&>(table);
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const std::int64_t row = tokens[static_cast<std::size_t>(i)] - first_row;
    const bool held = row >= 0 && row < weight.rows();
    for (std::int64_t k = 0; k < out.cols; ++k) {
      out.row(i)[k] = held ? static_cast<float>(weight.row(row)[k]) : 0.0F;
    }
  }
}

void ReferenceOps::rms_norm(ConstMatrix x, std::span<const float> weight, float eps, Matrix out) {
  check_rms_norm(x, weight, out);
  for (std::int64_t i = 0; i < x.rows; ++i)
    norm(x.row(i), weight, eps, out.row(i));
}

void ReferenceOps::head_norm(Matrix x, std::span<const float> weight, float eps) {
  check_head_norm(x, weight);
  const auto head_dim = static_cast<std::int64_t>(weight.size());
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (float* head = x.row(i); head < x.row(i) + x.cols; head += head_dim)
      norm(head, weight, eps, head);
  }
}

void ReferenceOps::linear(const Weight& w, ConstMatrix x, Matrix out) {
  check_linear(w, x, out);
  const auto& weight = static_cast<const ReferenceWeight&>(w);
  const bool round = activations_ == ActivationMode::kInt8 && x.cols % kGroupSize == 0;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const std::vector<double> exact(x.row(i), x.row(i) + x.cols);
    const std::vector<double> rounded = !round ? exact
                                        : weight.rounding == Rounding::kTwice
                                            ? rounded_twice(x.row(i), x.cols)
                                            : rounded_to_int8(x.row(i), x.cols);
    for (std::int64_t n = 0; n < out.cols; ++n) {
      const bool quantized = weight.quantized[static_cast<std::size_t>(n)];
      out.row(i)[n] =
          static_cast<float>(dot(weight.row(n), quantized ? rounded.data() : exact.data(), x.cols));
    }
  }
}

void ReferenceOps::rope(Matrix x, std::int64_t num_heads, std::int64_t head_dim, bool adjacent,
                        const RopeAngles& angles) {
  check_rope(x, num_heads, head_dim, angles);
  const std::int64_t half = angles.cos.cols;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t h = 0; h < num_heads; ++h) {
      float* head = x.row(i) + h * head_dim;
      for (std::int64_t j = 0; j < half; ++j) {
        float& a = adjacent ? head[2 * j] : head[j];
        float& b = adjacent ? head[2 * j + 1] : head[j + half];
        const double cos = angles.cos.row(i)[j];
        const double sin = angles.sin.row(i)[j];
        const double rotated = a * cos - b * sin;
        b = static_cast<float>(b * cos + a * sin);
        a = static_cast<float>(rotated);
      }
    }
  }
}

void ReferenceOps::write_kv(KvCache& cache, std::int64_t layer, ConstMatrix k, ConstMatrix v,
                            std::span<const std::int32_t> slot_mapping) {
  check_write_kv(cache, layer, k, v, slot_mapping);
  auto& store = static_cast<ReferenceKvCache&>(cache);
  const bool half = cache.shape().type == KvType::kF16;
  const auto stored = [half](float x) { return half ? f32_from_f16(f16_from_f32(x)) : x; };
  for (std::int64_t i = 0; i < k.rows; ++i) {
    const std::size_t at = store.index(layer, slot_mapping[static_cast<std::size_t>(i)]);
    for (std::int64_t d = 0; d < k.cols; ++d) {
      store.k[at + static_cast<std::size_t>(d)] = stored(k.row(i)[d]);
      store.v[at + static_cast<std::size_t>(d)] = stored(v.row(i)[d]);
    }
  }
}

void ReferenceOps::copy_block(KvCache& cache, std::int64_t from, std::int64_t to) {
  check_copy_block(cache, from, to);
  auto& store = static_cast<ReferenceKvCache&>(cache);
  const std::int64_t size = kBlockSize * cache.shape().num_kv_heads * cache.shape().head_dim;
  for (std::int64_t layer = 0; layer < cache.shape().num_layers; ++layer) {
    for (std::vector<float>* values : {&store.k, &store.v}) {
      std::copy_n(
          values->begin() + static_cast<std::ptrdiff_t>(store.index(layer, from * kBlockSize)),
          size, values->begin() + static_cast<std::ptrdiff_t>(store.index(layer, to * kBlockSize)));
    }
  }
}

void ReferenceOps::attention(const KvCache& cache, std::int64_t layer, ConstMatrix q,
                             const AttentionBatch& batch, const AttentionParams& params,
                             Matrix out) {
  check_attention(cache, layer, q, batch, params, out);
  const auto& store = static_cast<const ReferenceKvCache&>(cache);
  const std::int64_t head_dim = cache.shape().head_dim;
  const std::int64_t num_heads = q.cols / head_dim;
  const std::int64_t group = num_heads / cache.shape().num_kv_heads;
  for (std::size_t s = 0; s < batch.context_lens.size(); ++s) {
    const auto first_block = static_cast<std::size_t>(batch.cu_blocks[s]);
    const HeadAttention head{store, layer, batch.block_tables.subspan(first_block), params};
    const std::int64_t end = batch.cu_seqlens_q[s + 1];
    for (std::int64_t row = batch.cu_seqlens_q[s]; row < end; ++row) {
      const std::int64_t context = batch.context_lens[s] - (end - 1 - row);
      for (std::int64_t h = 0; h < num_heads; ++h) {
        head.run(q.row(row) + h * head_dim, context, h / group, out.row(row) + h * head_dim);
      }
    }
  }
}

void ReferenceOps::gate(model::Activation activation, ConstMatrix gate_up, Matrix out) {
  check_gate(gate_up, out);
  for (std::int64_t i = 0; i < out.rows; ++i) {
    for (std::int64_t k = 0; k < out.cols; ++k) {
      out.row(i)[k] =
          static_cast<float>(gated(activation, gate_up.row(i)[k]) * gate_up.row(i)[out.cols + k]);
    }
  }
}

void ReferenceOps::add(Matrix x, ConstMatrix y) {
  check_add(x, y);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t k = 0; k < x.cols; ++k)
      x.row(i)[k] += y.row(i)[k];
  }
}

void ReferenceOps::add_bias(Matrix x, std::span<const float> bias) {
  check_add_bias(x, bias);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t k = 0; k < x.cols; ++k)
      x.row(i)[k] += bias[static_cast<std::size_t>(k)];
  }
}

void ReferenceOps::clear(Matrix x) {
  for (std::int64_t i = 0; i < x.rows; ++i)
    std::fill(x.row(i), x.row(i) + x.cols, 0.0F);
}

void ReferenceOps::scale(Matrix x, float factor) {
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t k = 0; k < x.cols; ++k)
      x.row(i)[k] *= factor;
  }
}

void ReferenceOps::soft_cap(Matrix x, float cap) {
  check_soft_cap(x, cap);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t k = 0; k < x.cols; ++k)
      x.row(i)[k] = static_cast<float>(capped(x.row(i)[k], cap));
  }
}

void ReferenceOps::log_sum(ConstMatrix logits, std::span<LogitSum> out) {
  check_log_sum(logits, out);
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    const std::span row(logits.row(i), static_cast<std::size_t>(logits.cols));
    LogitSum sum{.peak = *std::max_element(row.begin(), row.end())};
    for (const float logit : row) {
      sum.finite = sum.finite && std::isfinite(logit);
      sum.sum += std::exp(static_cast<double>(logit) - sum.peak);
    }
    out[static_cast<std::size_t>(i)] = sum;
  }
}

void ReferenceOps::score(const Weight& w, ConstMatrix x, float soft_cap,
                         std::span<const std::int32_t> targets, std::span<LogitSum> out) {
  check_score(w, x, soft_cap, targets, out);
  std::vector<float> logits(static_cast<std::size_t>(w.rows()));
  const Matrix row{logits.data(), 1, w.rows(), w.rows()};
  for (std::size_t i = 0; i < out.size(); ++i) {
    linear(w, {x.row(static_cast<std::int64_t>(i)), 1, x.cols, x.stride}, row);
    if (soft_cap > 0) this->soft_cap(row, soft_cap);
    log_sum(row, out.subspan(i, 1));
    if (targets[i] >= 0 && targets[i] < w.rows()) {
      out[i].target = logits[static_cast<std::size_t>(targets[i])];
    }
  }
}

void ReferenceOps::route(const model::ExpertSpec& spec, ConstMatrix logits,
                         std::span<std::int32_t> experts, std::span<float> weights) {
  check_route(spec, logits, experts, weights);
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    route_row(spec, logits.row(i), experts.data() + i * spec.num_used,
              weights.data() + i * spec.num_used);
  }
}

void ReferenceOps::gather_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix out) {
  check_rows(x, rows, out);
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const float* from = x.row(rows[static_cast<std::size_t>(i)]);
    std::copy(from, from + x.cols, out.row(i));
  }
}

void ReferenceOps::scatter_add(ConstMatrix x, std::span<const std::int32_t> rows,
                               std::span<const float> weights, Matrix out) {
  check_rows(out, rows, x);
  INVARIANT_EQ(weights.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float* from = x.row(static_cast<std::int64_t>(i));
    float* to = out.row(rows[i]);
    for (std::int64_t k = 0; k < x.cols; ++k) {
      to[k] = static_cast<float>(static_cast<double>(weights[i]) * from[k] + to[k]);
    }
  }
}

}  // namespace

ReferenceKvCache::ReferenceKvCache(const KvShape& shape, std::int64_t num_blocks)
    : shape_(shape), num_blocks_(num_blocks) {
  const std::size_t size = index(shape.num_layers, 0);
  k.resize(size);
  v.resize(size);
}

std::size_t ReferenceKvCache::index(std::int64_t layer, std::int64_t slot) const {
  return static_cast<std::size_t>((layer * num_blocks_ * kBlockSize + slot) * shape_.num_kv_heads *
                                  shape_.head_dim);
}

std::unique_ptr<Ops> make_reference_ops(ActivationMode activations) {
  return std::make_unique<ReferenceOps>(activations);
}

}  // namespace brigade::kernels
