// SPDX-License-Identifier: Apache-2.0
#include "common/model/spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "common/base/strings.h"
#include "common/model/gguf.h"

namespace brigade::model {
namespace {

/// What tells one GGUF architecture from another. A new family is a new row (and new columns where
/// it needs them).
struct Architecture {
  std::string_view name;
  RopeStyle rope_style;
};

constexpr std::array<Architecture, 1> kArchitectures = {{
    {"llama", RopeStyle::kAdjacent},
}};

constexpr std::int64_t kMaxLayers = 1024;
constexpr std::int64_t kMaxHidden = 1 << 17;
constexpr std::int64_t kMaxIntermediate = 1 << 20;
constexpr std::int64_t kMaxHeads = 1024;
constexpr std::int64_t kMaxHeadDim = 1024;
constexpr std::int64_t kMaxVocab = 1 << 22;
constexpr std::int64_t kMaxContext = 1 << 24;

/// Metadata below `{architecture}.`, range-checked.
class Keys {
 public:
  Keys(const GgufFile& file, std::string_view architecture) : file_(file), prefix_(architecture) {}

  [[nodiscard]] std::string key(std::string_view name) const { return str_cat(prefix_, ".", name); }
  [[nodiscard]] bool has(std::string_view name) const { return file_.has(key(name)); }

  /// A scalar, or a per-layer array whose entries are all the same.
  [[nodiscard]] Result<std::int64_t> integer(std::string_view name, std::int64_t min,
                                             std::int64_t max) const {
    const std::string full = key(name);
    auto scalar = file_.integer(full);
    if (!scalar.ok()) {
      const auto array = file_.integers(full);
      if (!array.ok() || array->empty()) return scalar.status();
      if (std::adjacent_find(array->begin(), array->end(), std::not_equal_to<>()) != array->end()) {
        return invalid_argument(
            str_cat("key ", quoted(full), " differs between layers, which is not supported"));
      }
      scalar = array->front();
    }
    if (*scalar < min || *scalar > max) {
      return data_loss(
          str_cat("key ", quoted(full), " is ", *scalar, "; ", min, " to ", max, " is allowed"));
    }
    return scalar;
  }

  [[nodiscard]] Result<std::int64_t> integer_or(std::string_view name, std::int64_t fallback,
                                                std::int64_t min, std::int64_t max) const {
    if (!has(name)) return fallback;
    return integer(name, min, max);
  }

  /// Above `min` (not equal) and at most `max`; NaN is neither.
  [[nodiscard]] Result<double> number(std::string_view name, double min, double max) const {
    const std::string full = key(name);
    ASSIGN_OR_RETURN(const double value, file_.number(full));
    if (!(value > min && value <= max)) {
      return data_loss(str_cat("key ", quoted(full), " is ", value, "; above ", min, " up to ", max,
                               " is allowed"));
    }
    return value;
  }

  [[nodiscard]] Result<double> number_or(std::string_view name, double fallback, double min,
                                         double max) const {
    if (!has(name)) return fallback;
    return number(name, min, max);
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

Status read_sizes(const Keys& keys, ModelSpec& spec) {
  ASSIGN_OR_RETURN(spec.num_layers, keys.integer("block_count", 1, kMaxLayers));
  ASSIGN_OR_RETURN(spec.context_length, keys.integer("context_length", 1, kMaxContext));
  ASSIGN_OR_RETURN(spec.hidden_size, keys.integer("embedding_length", 1, kMaxHidden));
  ASSIGN_OR_RETURN(spec.intermediate_size,
                   keys.integer("feed_forward_length", 1, kMaxIntermediate));
  ASSIGN_OR_RETURN(const double eps, keys.number("attention.layer_norm_rms_epsilon", 0, 1));
  spec.rms_norm_eps = static_cast<float>(eps);
  ASSIGN_OR_RETURN(const auto num_experts, keys.integer_or("expert_count", 0, 0, 1 << 16));
  if (num_experts > 0) {
    return invalid_argument(str_cat("key ", quoted(keys.key("expert_count")), " is ", num_experts,
                                    ": mixtures of experts are not supported"));
  }
  return {};
}

Status read_heads(const Keys& keys, ModelSpec& spec) {
  ASSIGN_OR_RETURN(spec.num_heads, keys.integer("attention.head_count", 1, kMaxHeads));
  ASSIGN_OR_RETURN(spec.num_kv_heads,
                   keys.integer_or("attention.head_count_kv", spec.num_heads, 1, kMaxHeads));
  if (spec.num_heads % spec.num_kv_heads != 0) {
    return data_loss(str_cat("key ", quoted(keys.key("attention.head_count_kv")), " is ",
                             spec.num_kv_heads, ", which does not divide the ", spec.num_heads,
                             " heads"));
  }
  if (!keys.has("attention.key_length") && spec.hidden_size % spec.num_heads != 0) {
    return data_loss(str_cat("key ", quoted(keys.key("attention.head_count")), " is ",
                             spec.num_heads, ", which does not divide the hidden size ",
                             spec.hidden_size));
  }
  ASSIGN_OR_RETURN(
      spec.head_dim,
      keys.integer_or("attention.key_length", spec.hidden_size / spec.num_heads, 2, kMaxHeadDim));
  ASSIGN_OR_RETURN(const auto value_dim,
                   keys.integer_or("attention.value_length", spec.head_dim, 2, kMaxHeadDim));
  if (value_dim != spec.head_dim || spec.head_dim % 2 != 0 || spec.head_dim > kMaxHeadDim) {
    return invalid_argument(str_cat("heads of ", spec.head_dim, " key and ", value_dim,
                                    " value dimensions are not supported: equal and even, up to ",
                                    kMaxHeadDim));
  }
  return {};
}

/// Divisors of the inverse frequencies: the tensor `rope_freqs` (llama 3's scaling), or one factor
/// for all.
Status read_rope_divisors(const GgufFile& file, const Keys& keys, ModelSpec& spec) {
  const auto half = spec.rotary_dim / 2;
  if (keys.has("rope.scaling.type")) {
    ASSIGN_OR_RETURN(const auto type, file.string(keys.key("rope.scaling.type")));
    if (type == "linear") {
      ASSIGN_OR_RETURN(const double factor, keys.number("rope.scaling.factor", 0, 1e6));
      spec.rope_divisors.assign(static_cast<std::size_t>(half), static_cast<float>(factor));
    } else if (type != "none") {
      return invalid_argument(str_cat("key ", quoted(keys.key("rope.scaling.type")), " is ",
                                      quoted(type), ", which is not supported"));
    }
  }
  const TensorInfo* freqs = file.find_tensor("rope_freqs.weight");
  if (freqs == nullptr) return {};
  if (freqs->type != TensorType::kF32 || freqs->rows != 1 || freqs->cols != half) {
    return data_loss(str_cat("tensor \"rope_freqs.weight\" is ", to_string(freqs->type), " [",
                             freqs->rows, ", ", freqs->cols, "], not F32 [1, ", half, "]"));
  }
  ASSIGN_OR_RETURN(spec.rope_divisors, freqs->read_floats());
  for (float divisor : spec.rope_divisors) {
    if (!(divisor > 0 && std::isfinite(divisor))) {
      return data_loss(str_cat("tensor \"rope_freqs.weight\" holds ", divisor));
    }
  }
  return {};
}

Status read_rope(const GgufFile& file, const Keys& keys, ModelSpec& spec) {
  ASSIGN_OR_RETURN(spec.rotary_dim,
                   keys.integer_or("rope.dimension_count", spec.head_dim, 2, spec.head_dim));
  if (spec.rotary_dim % 2 != 0) {
    return data_loss(str_cat("key ", quoted(keys.key("rope.dimension_count")), " is ",
                             spec.rotary_dim, ", which is odd"));
  }
  ASSIGN_OR_RETURN(spec.rope_theta, keys.number_or("rope.freq_base", 10000, 0, 1e12));
  return read_rope_divisors(file, keys, spec);
}

/// Looks for the tensors of an architecture, and remembers which of the file's are known.
class TensorChecker {
 public:
  explicit TensorChecker(const GgufFile& file) : file_(file) {}

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
                                    "; a norm must be F32, F16 or BF16"));
  }

  void allow(const std::string& name) { known_.insert(name); }

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

 private:
  const GgufFile& file_;
  std::set<std::string, std::less<>> known_;
};

Status check_tensors(const GgufFile& file, const ModelSpec& spec) {
  TensorChecker checker(file);
  const std::int64_t hidden = spec.hidden_size;
  const std::int64_t ffn = spec.intermediate_size;
  const std::int64_t q_size = spec.num_heads * spec.head_dim;
  const std::int64_t kv_size = spec.num_kv_heads * spec.head_dim;
  RETURN_IF_ERROR(checker.need("token_embd.weight", spec.vocab_size, hidden));
  RETURN_IF_ERROR(checker.need_vector("output_norm.weight", hidden));
  if (!spec.tied_embeddings) {
    RETURN_IF_ERROR(checker.need("output.weight", spec.vocab_size, hidden));
  }
  checker.allow("rope_freqs.weight");
  for (std::int64_t i = 0; i < spec.num_layers; ++i) {
    const auto name = [i](std::string_view part) {
      return str_cat("blk.", i, ".", part, ".weight");
    };
    RETURN_IF_ERROR(checker.need_vector(name("attn_norm"), hidden));
    RETURN_IF_ERROR(checker.need(name("attn_q"), q_size, hidden));
    RETURN_IF_ERROR(checker.need(name("attn_k"), kv_size, hidden));
    RETURN_IF_ERROR(checker.need(name("attn_v"), kv_size, hidden));
    RETURN_IF_ERROR(checker.need(name("attn_output"), hidden, q_size));
    RETURN_IF_ERROR(checker.need_vector(name("ffn_norm"), hidden));
    RETURN_IF_ERROR(checker.need(name("ffn_gate"), ffn, hidden));
    RETURN_IF_ERROR(checker.need(name("ffn_up"), ffn, hidden));
    RETURN_IF_ERROR(checker.need(name("ffn_down"), hidden, ffn));
  }
  return checker.all_known();
}

Status read_vocabulary(const GgufFile& file, const Keys& keys, ModelSpec& spec) {
  const TensorInfo* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) return data_loss("tensor \"token_embd.weight\" is missing");
  ASSIGN_OR_RETURN(spec.vocab_size, keys.integer_or("vocab_size", embedding->rows, 1, kMaxVocab));
  if (spec.vocab_size > kMaxVocab) {
    return data_loss(str_cat("tensor \"token_embd.weight\" has ", spec.vocab_size,
                             " rows; at most ", kMaxVocab));
  }
  spec.tied_embeddings = file.find_tensor("output.weight") == nullptr;
  return {};
}

Result<ModelSpec> read_with(const GgufFile& file, const Architecture& architecture) {
  ModelSpec spec;
  spec.architecture = architecture.name;
  spec.rope_style = architecture.rope_style;
  spec.name = file.name();
  const Keys keys(file, architecture.name);
  RETURN_IF_ERROR(read_sizes(keys, spec));
  RETURN_IF_ERROR(read_heads(keys, spec));
  RETURN_IF_ERROR(read_rope(file, keys, spec));
  RETURN_IF_ERROR(read_vocabulary(file, keys, spec));
  RETURN_IF_ERROR(check_tensors(file, spec));
  return spec;
}

}  // namespace

Result<ModelSpec> read_spec(const GgufFile& file) {
  const std::string path = quoted(file.path(), 512);
  const auto name = file.string("general.architecture");
  if (!name.ok()) return name.status().with_context(path);
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name != *name) continue;
    auto spec = read_with(file, architecture);
    if (!spec.ok()) return spec.status().with_context(path);
    return spec;
  }
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    known += str_cat(known.empty() ? "" : ", ", architecture.name);
  }
  return invalid_argument(str_cat(path, ": key \"general.architecture\" is ", quoted(*name),
                                  "; these can be run: ", known));
}

}  // namespace brigade::model
