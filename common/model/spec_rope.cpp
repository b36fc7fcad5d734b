// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "common/base/strings.h"
#include "common/model/spec_parts.h"

namespace brigade::model {
namespace {

/// Multiplies the divisors by a tensor's values.
Status divide_by_tensor(const TensorInfo& tensor, std::int64_t half, RopeSpec& rope) {
  if (tensor.type != TensorType::kF32 || tensor.rows != 1 || tensor.cols != half) {
    return data_loss(str_cat("tensor ", quoted(tensor.name), " is ", to_string(tensor.type), " [",
                             tensor.rows, ", ", tensor.cols, "], not F32 [1, ", half, "]"));
  }
  ASSIGN_OR_RETURN(const std::vector<float> values, tensor.read_floats());
  rope.divisors.resize(values.size(), 1.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0 && std::isfinite(values[i]))) {
      return data_loss(str_cat("tensor ", quoted(tensor.name), " holds ", values[i]));
    }
    rope.divisors[i] *= values[i];
  }
  return {};
}

/// LongRoPE (arXiv 2402.13753): one list of divisors for contexts up to the original length, one
/// for longer ones. The choice is made once, by the context the model is served with, so that a
/// sequence's keys never mix both.
Status read_long_rope(const SpecKeys& keys, std::int64_t half, const ModelSpec& spec,
                      RopeSpec& rope) {
  ASSIGN_OR_RETURN(const auto original, keys.integer_or("rope.scaling.original_context_length",
                                                        spec.context_length, 1, INT32_MAX));
  const std::string_view name =
      spec.context_length > original ? "rope_factors_long.weight" : "rope_factors_short.weight";
  const TensorInfo* factors = keys.file().find_tensor(name);
  if (factors == nullptr) return data_loss(str_cat("tensor ", quoted(name), " is missing"));
  return divide_by_tensor(*factors, half, rope);
}

/// YaRN (arXiv 2309.00071): low frequencies are divided by the factor, high ones kept, those
/// between mixed; section 3.4's temperature goes into the magnitude.
Status read_yarn(const SpecKeys& keys, std::int64_t rotary_dim, double factor, RopeSpec& rope) {
  ASSIGN_OR_RETURN(const auto original,
                   keys.integer("rope.scaling.original_context_length", 1, INT32_MAX));
  ASSIGN_OR_RETURN(const double fast, keys.number_or("rope.scaling.yarn_beta_fast", 32, 0, 1e6));
  ASSIGN_OR_RETURN(const double slow, keys.number_or("rope.scaling.yarn_beta_slow", 1, 0, 1e6));
  ASSIGN_OR_RETURN(const double extrapolated,
                   keys.number_or("rope.scaling.yarn_ext_factor", 1, -1e-9, 1));
  const auto size = static_cast<double>(rotary_dim);
  // The place among the frequencies whose wave turns so many times in the original context.
  const auto place = [&](double turns) {
    return size * std::log(static_cast<double>(original) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
  };
  const double low = std::max(0.0, std::floor(place(fast)));
  const double high = std::min(size - 1, std::ceil(place(slow)));
  for (std::int64_t i = 0; i < rotary_dim / 2; ++i) {
    const double at = (static_cast<double>(i) - low) / std::max(0.001, high - low);
    const double kept = (1 - std::clamp(at, 0.0, 1.0)) * extrapolated;
    rope.divisors.push_back(1 / (kept + (1 - kept) / factor));
  }
  if (extrapolated > 0) {
    ASSIGN_OR_RETURN(const double scale,
                     keys.number_or("rope.scaling.yarn_attn_factor", 1, 0, 1e3));
    rope.magnitude *= scale * (1 + 0.1 * std::log(factor));
  }
  return {};
}

Status read_scaling(const SpecKeys& keys, const ModelSpec& spec, RopeSpec& rope) {
  const std::int64_t half = spec.rotary_dim / 2;
  ASSIGN_OR_RETURN(const double old_factor, keys.number_or("rope.scale_linear", 1, -1e-9, 1e6));
  ASSIGN_OR_RETURN(double factor, keys.number_or("rope.scaling.factor", old_factor, -1e-9, 1e6));
  if (factor == 0) factor = 1;
  ASSIGN_OR_RETURN(rope.magnitude, keys.number_or("rope.scaling.attn_factor", 1, 0, 1e3));
  std::string_view type = "linear";
  if (keys.has("rope.scaling.type")) {
    ASSIGN_OR_RETURN(type, keys.file().string(keys.key("rope.scaling.type")));
  }
  if (type == "yarn") {
    RETURN_IF_ERROR(read_yarn(keys, spec.rotary_dim, factor, rope));
  } else if (type == "longrope" || keys.file().find_tensor("rope_factors_long.weight") != nullptr) {
    RETURN_IF_ERROR(read_long_rope(keys, half, spec, rope));
  } else if (type == "linear") {
    if (factor != 1) rope.divisors.assign(static_cast<std::size_t>(half), factor);
  } else if (type != "none") {
    return invalid_argument(str_cat("key ", quoted(keys.key("rope.scaling.type")), " is ",
                                    quoted(type),
                                    ", which is not supported: none, linear, yarn, longrope are"));
  }
  // Llama 3's scaling comes as a tensor.
  const TensorInfo* freqs = keys.file().find_tensor("rope_freqs.weight");
  return freqs == nullptr ? Status() : divide_by_tensor(*freqs, half, rope);
}

}  // namespace

Status read_rope(const SpecKeys& keys, const Architecture& architecture, ModelSpec& spec) {
  ASSIGN_OR_RETURN(spec.rotary_dim,
                   keys.integer_or("rope.dimension_count", spec.head_dim, 2, spec.head_dim));
  if (spec.rotary_dim % 2 != 0) {
    return data_loss(str_cat("key ", quoted(keys.key("rope.dimension_count")), " is ",
                             spec.rotary_dim, ", which is odd"));
  }
  constexpr double kMaxTheta = 1e12;
  RopeSpec rope;
  // A base of 1 or less turns no slower with each pair, and YaRN divides by its logarithm.
  ASSIGN_OR_RETURN(rope.theta, keys.number_or("rope.freq_base", 10000, 1, kMaxTheta));
  RETURN_IF_ERROR(read_scaling(keys, spec, rope));
  spec.ropes = {rope};
  if (keys.has("rope.freq_base_swa") || architecture.window_theta > 0) {
    RopeSpec local;
    ASSIGN_OR_RETURN(local.theta,
                     keys.number_or("rope.freq_base_swa", architecture.window_theta, 1, kMaxTheta));
    spec.ropes.push_back(local);
  }
  return {};
}

}  // namespace brigade::model
