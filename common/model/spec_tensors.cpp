// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "common/base/strings.h"
#include "common/model/gguf.h"
#include "common/model/spec_parts.h"

namespace brigade::model {
namespace {

/// Looks for the tensors of an architecture, and remembers which of the file's are known.
class TensorChecker {
 public:
  TensorChecker(const GgufFile& file, const ModelSpec& spec) : file_(file), spec_(spec) {}

  Status check() {
    const std::int64_t hidden = spec_.hidden_size;
    RETURN_IF_ERROR(need("token_embd.weight", spec_.vocab_size, hidden));
    RETURN_IF_ERROR(need_vector("output_norm.weight", hidden));
    if (!spec_.tied_embeddings) RETURN_IF_ERROR(need("output.weight", spec_.vocab_size, hidden));
    for (const char* name :
         {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}) {
      known_.insert(name);
    }
    for (std::int64_t i = 0; i < spec_.num_layers; ++i) {
      prefix_ = str_cat("blk.", i, ".");
      RETURN_IF_ERROR(check_attention());
      RETURN_IF_ERROR(spec_.layer(i).has_experts ? check_experts() : check_ffn());
    }
    return all_known();
  }

 private:
  Status check_attention() {
    const std::int64_t q = spec_.num_heads * spec_.head_dim;
    const std::int64_t kv = spec_.num_kv_heads * spec_.head_dim;
    RETURN_IF_ERROR(need_norm("attn_norm", spec_.hidden_size));
    if (spec_.fused_qkv) {
      RETURN_IF_ERROR(need_matrix("attn_qkv", q + 2 * kv, spec_.hidden_size, spec_.qkv_bias));
    } else {
      RETURN_IF_ERROR(need_matrix("attn_q", q, spec_.hidden_size, spec_.qkv_bias));
      RETURN_IF_ERROR(need_matrix("attn_k", kv, spec_.hidden_size, spec_.qkv_bias));
      RETURN_IF_ERROR(need_matrix("attn_v", kv, spec_.hidden_size, spec_.qkv_bias));
    }
    if (spec_.qk_norm) {
      RETURN_IF_ERROR(need_norm("attn_q_norm", spec_.head_dim));
      RETURN_IF_ERROR(need_norm("attn_k_norm", spec_.head_dim));
    }
    RETURN_IF_ERROR(need_matrix("attn_output", spec_.hidden_size, q, spec_.output_bias));
    if (spec_.post_norms) RETURN_IF_ERROR(need_norm("post_attention_norm", spec_.hidden_size));
    RETURN_IF_ERROR(need_norm("ffn_norm", spec_.hidden_size));
    return spec_.post_norms ? need_norm("post_ffw_norm", spec_.hidden_size) : Status();
  }

  Status check_ffn() {
    const std::int64_t ffn = spec_.intermediate_size;
    if (spec_.fused_gate_up) {
      RETURN_IF_ERROR(need_matrix("ffn_up", 2 * ffn, spec_.hidden_size, spec_.ffn_bias));
    } else {
      RETURN_IF_ERROR(need_matrix("ffn_gate", ffn, spec_.hidden_size, spec_.ffn_bias));
      RETURN_IF_ERROR(need_matrix("ffn_up", ffn, spec_.hidden_size, spec_.ffn_bias));
    }
    return need_matrix("ffn_down", spec_.hidden_size, ffn, spec_.ffn_bias);
  }

  Status check_experts() {
    const std::int64_t count = spec_.experts.num_experts;
    const std::int64_t ffn = spec_.experts.intermediate_size;
    const std::int64_t hidden = spec_.hidden_size;
    RETURN_IF_ERROR(need(str_cat(prefix_, "ffn_gate_inp.weight"), count, hidden));
    if (spec_.experts.stacked) {
      RETURN_IF_ERROR(need(str_cat(prefix_, "ffn_gate_exps.weight"), count * ffn, hidden));
      RETURN_IF_ERROR(need(str_cat(prefix_, "ffn_up_exps.weight"), count * ffn, hidden));
      return need(str_cat(prefix_, "ffn_down_exps.weight"), count * hidden, ffn);
    }
    for (std::int64_t e = 0; e < count; ++e) {
      RETURN_IF_ERROR(need(str_cat(prefix_, "ffn_gate.", e, ".weight"), ffn, hidden));
      RETURN_IF_ERROR(need(str_cat(prefix_, "ffn_up.", e, ".weight"), ffn, hidden));
      RETURN_IF_ERROR(need(str_cat(prefix_, "ffn_down.", e, ".weight"), hidden, ffn));
    }
    return {};
  }

  Status need_matrix(std::string_view part, std::int64_t rows, std::int64_t cols, bool bias) {
    RETURN_IF_ERROR(need(str_cat(prefix_, part, ".weight"), rows, cols));
    return bias ? need_vector(str_cat(prefix_, part, ".bias"), rows) : Status();
  }

  Status need_norm(std::string_view part, std::int64_t size) {
    return need_vector(str_cat(prefix_, part, ".weight"), size);
  }

  Status need(const std::string& name, std::int64_t rows, std::int64_t cols) {
    const TensorInfo* tensor = file_.find_tensor(name);
    if (tensor == nullptr) return data_loss(str_cat("tensor ", quoted(name), " is missing"));
    known_.insert(name);
    if (tensor->rows != rows || tensor->cols != cols) {
      return data_loss(str_cat("tensor ", quoted(name), " is [", tensor->rows, ", ", tensor->cols,
                               "], not [", rows, ", ", cols, "]"));
    }
    return {};
  }

  /// A vector that is applied as it is: never quantised.
  Status need_vector(const std::string& name, std::int64_t size) {
    RETURN_IF_ERROR(need(name, 1, size));
    const TensorType type = file_.find_tensor(name)->type;
    if (block_elements(type) == 1) return {};
    return invalid_argument(str_cat("tensor ", quoted(name), " is stored as ", to_string(type),
                                    "; a norm or bias must be F32, F16 or BF16"));
  }

  /// A tensor nobody asked for (a bias, an adapter) would be ignored, and the output wrong without
  /// a word.
  [[nodiscard]] Status all_known() const {
    for (const TensorInfo& tensor : file_.tensors()) {
      if (!known_.contains(tensor.name)) {
        return invalid_argument(
            str_cat("tensor ", quoted(tensor.name),
                    " is not known in this architecture, and would be ignored"));
      }
    }
    return {};
  }

  const GgufFile& file_;
  const ModelSpec& spec_;
  std::set<std::string, std::less<>> known_;
  std::string prefix_;  ///< of the layer's tensors
};

}  // namespace

Status check_tensors(const GgufFile& file, const ModelSpec& spec) {
  return TensorChecker(file, spec).check();
}

}  // namespace brigade::model
