// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/partition.h"
#include "common/base/status.h"
#include "common/model/gguf.h"
#include "common/model/spec.h"

/// The op set a decoder is written against. One implementation a device: kernels/cpu (Highway),
/// kernels/reference (naive, double accumulation: the oracle of tests). All activations are f32,
/// row-major, one row a token.
///
/// Every op computes each row by itself in a fixed order: a row's bits depend neither on the other
/// rows of the call, nor on the number of threads, nor on the instruction set.
namespace brigade::kernels {

/// A view of f32 [rows, cols], rows `stride` floats apart. The buffer belongs to the caller.
struct Matrix {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  [[nodiscard]] float* row(std::int64_t i) const { return data + i * stride; }
};

struct ConstMatrix {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  ConstMatrix() = default;
  ConstMatrix(const float* d, std::int64_t r, std::int64_t c, std::int64_t s)
      : data(d), rows(r), cols(c), stride(s) {}
  ConstMatrix(const Matrix& m)  // NOLINT: implicit on purpose
      : data(m.data), rows(m.rows), cols(m.cols), stride(m.stride) {}
  [[nodiscard]] const float* row(std::int64_t i) const { return data + i * stride; }
};

/// How a device keeps weights. Every stored type is held exactly in one of these (docs/formats.md).
///
/// Quantised forms have unsigned codes of 4 or 8 bits in groups of 32 along a row, and
///     weight = scale * (code - zero_point) + minimum
/// with f16 scales, and minima where the name says so. The K forms have an f16 scale (and minimum)
/// for 8 groups, times an int8 for each group, in K16 for each half of a group. In kTable4 the code
/// picks one of 16 integers, and the scale is f32.
enum class WeightForm : std::uint8_t {
  kQ4,      ///< Q4_0
  kQ4Min,   ///< Q4_1
  kQ8,      ///< Q8_0, Q5_0
  kQ8Min,   ///< Q5_1
  kQ4K,     ///< Q4_K
  kQ8K,     ///< Q5_K
  kQ4K16,   ///< Q2_K, Q3_K
  kQ8K16,   ///< Q6_K; no minimum
  kTable4,  ///< IQ4_NL, IQ4_XS, MXFP4
  kF16,
  kBF16,
  kF32
};
inline constexpr int kNumQuantizedForms = 9;

/// How activations meet quantised weights: rounded to int8 in groups of 32 of their own row, or
/// kept in float (a checking mode). Plain weight forms always see float activations.
enum class ActivationMode : std::uint8_t { kInt8, kFloat };

/// How finely ActivationMode::kInt8 rounds what meets a quantised weight. kTwice rounds what the
/// first rounding left over as well and adds both products: 15 bits in effect, for twice the
/// multiplications on one read of the weight.
enum class Rounding : std::uint8_t { kOnce, kTwice };

/// The part of a stored tensor that a rank takes: `rows` of the outputs, `cols` of the inputs.
/// `cols` of quantised types begin and end at multiples of 32, also where a stored block has 256.
struct WeightSlice {
  const model::TensorInfo* tensor = nullptr;
  Range rows;
  Range cols;
};

/// Weights [rows (outputs), cols (inputs)] in a device's own layout. Slices of different forms may
/// be stacked in one.
class Weight {
 public:
  virtual ~Weight() = default;
  [[nodiscard]] virtual std::int64_t rows() const = 0;
  [[nodiscard]] virtual std::int64_t cols() const = 0;
  [[nodiscard]] virtual std::size_t bytes() const = 0;
};

enum class KvType : std::uint8_t { kF16, kF32 };

struct KvShape {
  std::int64_t num_layers = 0;    ///< of this stage
  std::int64_t num_kv_heads = 0;  ///< of this rank
  std::int64_t head_dim = 0;
  KvType type = KvType::kF16;

  /// Bytes of one block of 16 tokens over all layers.
  [[nodiscard]] std::size_t block_bytes() const {
    return static_cast<std::size_t>(num_layers * num_kv_heads * head_dim * 16 * 2) *
           (type == KvType::kF16 ? 2 : 4);
  }
};

/// Paged keys and values of one rank; a device's own layout. Blocks of 16 tokens, addressed by
/// number.
class KvCache {
 public:
  virtual ~KvCache() = default;
  [[nodiscard]] virtual const KvShape& shape() const = 0;
  [[nodiscard]] virtual std::int64_t num_blocks() const = 0;
};

/// Which rows belong to which sequence, and where their keys and values are. Rows of sequence i are
/// [cu_seqlens_q[i], cu_seqlens_q[i+1]), the last of its context_lens[i] tokens (those of this call
/// included, already written). Its blocks are block_tables[cu_blocks[i] .. cu_blocks[i+1]).
struct AttentionBatch {
  std::span<const std::int32_t> cu_seqlens_q;  ///< [num_seqs + 1]
  std::span<const std::int32_t> context_lens;  ///< [num_seqs]
  std::span<const std::int32_t> cu_blocks;     ///< [num_seqs + 1]
  std::span<const std::int32_t> block_tables;

  [[nodiscard]] std::int64_t num_seqs() const {
    return static_cast<std::int64_t>(context_lens.size());
  }
};

/// cos and sin of every row's rotation, once a step for all layers and heads.
struct RopeAngles {
  ConstMatrix cos;  ///< [num_tokens, rotary_dim / 2]
  ConstMatrix sin;
};

struct AttentionParams {
  float scale = 1;          ///< scores are multiplied by it
  float soft_cap = 0;       ///< c: they then become c tanh(score / c); 0: they stay
  std::int64_t window = 0;  ///< positions a row sees, its own included; 0: all before it
};

/// What is summed up of one row of logits, or of a share of it.
struct LogitSum {
  float peak = -std::numeric_limits<float>::infinity();  ///< the largest
  double sum = 0;                                        ///< of exp(logit - peak)
  bool finite = true;  ///< all are; if not, the rest means nothing
  /// Of Ops::score: the target's logit, where the share has it.
  float target = -std::numeric_limits<float>::infinity();
};

class Ops {
 public:
  virtual ~Ops() = default;

  /// Packs the slices, stacked by rows in order, reading nothing outside them. All have the same
  /// number of columns.
  [[nodiscard]] virtual Result<std::unique_ptr<Weight>> pack(
      std::span<const WeightSlice> slices, Rounding rounding = Rounding::kOnce) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<KvCache>> make_kv_cache(const KvShape& shape,
                                                                       std::int64_t num_blocks) = 0;

  /// out[i, :] = table[tokens[i] - first_row, :], or zeros where the token is not in the table
  /// (vocabulary-parallel: the sum over ranks is the embedding). out: [num_tokens, table.cols].
  virtual void embed(const Weight& table, std::int64_t first_row,
                     std::span<const std::int32_t> tokens, Matrix out) = 0;

  /// out = x / sqrt(mean(x^2) + eps) * weight, by row. x, out: [num_tokens, weight.size]; may be
  /// the same.
  virtual void rms_norm(ConstMatrix x, std::span<const float> weight, float eps, Matrix out) = 0;

  /// The same for each head of weight.size() dimensions, as they lie one after another in each row
  /// of x, in place.
  virtual void head_norm(Matrix x, std::span<const float> weight, float eps) = 0;

  /// out = x w^T. x: [num_tokens, w.cols], out: [num_tokens, w.rows].
  virtual void linear(const Weight& w, ConstMatrix x, Matrix out) = 0;

  /// Rotates `num_heads` heads of head_dim that lie one after another in each row of x, in place.
  /// adjacent: pairs (2i, 2i+1), else (i, i + rotary_dim/2). Dimensions from rotary_dim on stay.
  virtual void rope(Matrix x, std::int64_t num_heads, std::int64_t head_dim, bool adjacent,
                    const RopeAngles& angles) = 0;

  /// Writes row i of k and v ([num_tokens, num_kv_heads * head_dim]) to slot_mapping[i] = block *
  /// 16 + offset.
  virtual void write_kv(KvCache& cache, std::int64_t layer, ConstMatrix k, ConstMatrix v,
                        std::span<const std::int32_t> slot_mapping) = 0;

  /// Copies all layers' keys and values of block `from` to block `to`, another one.
  virtual void copy_block(KvCache& cache, std::int64_t from, std::int64_t to) = 0;

  /// Causal grouped-query attention over the cache: row at position p sees positions p - window + 1
  /// to p. q and out: [num_tokens, num_heads * head_dim]. Softmax runs in fixed chunks counted from
  /// position 0, so the result does not depend on how a prompt was cut.
  virtual void attention(const KvCache& cache, std::int64_t layer, ConstMatrix q,
                         const AttentionBatch& batch, const AttentionParams& params,
                         Matrix out) = 0;

  /// out = activation(gate) * up with gate_up = [num_tokens, gate | up], out: [num_tokens,
  /// gate_up.cols / 2].
  virtual void gate(model::Activation activation, ConstMatrix gate_up, Matrix out) = 0;

  /// x += y.
  virtual void add(Matrix x, ConstMatrix y) = 0;

  /// Every row of x += bias. bias: [x.cols].
  virtual void add_bias(Matrix x, std::span<const float> bias) = 0;

  /// x = 0.
  virtual void clear(Matrix x) = 0;

  /// x *= factor.
  virtual void scale(Matrix x, float factor) = 0;

  /// x = cap tanh(x / cap).
  virtual void soft_cap(Matrix x, float cap) = 0;

  /// out[i] sums up row i of logits. out: [logits.rows], where the host can read them.
  virtual void log_sum(ConstMatrix logits, std::span<LogitSum> out) = 0;

  /// What log_sum gives for soft_cap(linear(w, x)) (soft_cap 0: without) and the logit of row
  /// targets[i] of w, if it has that row; to the bit, but without the logits in memory. w: packed
  /// of one slice. targets, out: [x.rows].
  virtual void score(const Weight& w, ConstMatrix x, float soft_cap,
                     std::span<const std::int32_t> targets, std::span<LogitSum> out) = 0;

  /// Chooses for each row of logits [num_tokens, num_experts] the num_used experts with the largest
  /// (a tie goes to the lower one) and gives them in rising order with their weights: their share
  /// of the softmax over all experts, made to sum to 1 where the spec says so, times its scale.
  /// experts, weights: [num_tokens, num_used], where the host can read them.
  virtual void route(const model::ExpertSpec& spec, ConstMatrix logits,
                     std::span<std::int32_t> experts, std::span<float> weights) = 0;

  /// out[i, :] = x[rows[i], :].
  virtual void gather_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix out) = 0;

  /// out[rows[i], :] += weights[i] * x[i, :]. No row twice.
  virtual void scatter_add(ConstMatrix x, std::span<const std::int32_t> rows,
                           std::span<const float> weights, Matrix out) = 0;
};

struct CpuOptions {
  int num_threads = 1;
  bool pin = false;  ///< pin thread i to the i-th allowed CPU (from first_cpu on)
  int first_cpu = 0;
  /// Wait by spinning briefly before sleeping: only with a core for each thread.
  bool spin = false;
  ActivationMode activations = ActivationMode::kInt8;
};

/// The fast CPU implementation, with the best instruction set this CPU has
/// (BRIGADE_CPU_TARGET=avx2|avx3_dl|... picks a lesser one, for tests).
[[nodiscard]] std::unique_ptr<Ops> make_cpu_ops(const CpuOptions& options);
/// The instruction set make_cpu_ops uses, for people: "AVX3_DL".
[[nodiscard]] std::string_view cpu_target_name();

/// The oracle: plain loops, double accumulation, exact weights, f32 results.
[[nodiscard]] std::unique_ptr<Ops> make_reference_ops(ActivationMode activations);

}  // namespace brigade::kernels
