// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "common/model/spec.h"

namespace brigade::model {
namespace {

/// Every weight form can be cut at multiples of this, in rows (panels) and in columns (blocks).
constexpr std::int64_t kUnit = 32;

std::int64_t units_of(std::int64_t size) {
  return (size + kUnit - 1) / kUnit;
}

/// Weights a KV head brings to a rank in one layer: its query heads' rows of q and columns of o,
/// its rows of k and v.
std::int64_t kv_head_cost(const ModelSpec& spec) {
  const std::int64_t group = spec.num_heads / spec.num_kv_heads;
  return (2 * group + 2) * spec.head_dim * spec.hidden_size;
}

std::int64_t ffn_column_cost(const ModelSpec& spec) {
  return 3 * spec.hidden_size;
}

std::int64_t layer_cost(const ModelSpec& spec) {
  return spec.num_kv_heads * kv_head_cost(spec) + spec.intermediate_size * ffn_column_cost(spec);
}

std::int64_t max_tp(const ModelSpec& spec) {
  const std::int64_t group_width = spec.num_heads / spec.num_kv_heads * spec.head_dim;
  if (group_width % kUnit != 0) return 1;
  return std::min({spec.num_kv_heads, units_of(spec.intermediate_size), units_of(spec.vocab_size)});
}

std::string up_to(std::string_view what, std::int64_t max) {
  return max == 1 ? str_cat(what, " 1") : str_cat(what, " 1 to ", max);
}

std::string plural(std::int64_t count, std::string_view what) {
  return str_cat(count, " ", what, count == 1 ? "" : "s");
}

/// Why tp_size is too much: what there is least of.
std::string tp_limit(const ModelSpec& spec, std::int64_t tp_size) {
  const std::int64_t group_width = spec.num_heads / spec.num_kv_heads * spec.head_dim;
  if (tp_size > spec.num_kv_heads) return plural(spec.num_kv_heads, "KV head");
  if (group_width % kUnit != 0) {
    return str_cat("heads of ", group_width, " columns a KV head, which no cut at blocks of ",
                   kUnit, " divides");
  }
  if (tp_size > units_of(spec.intermediate_size)) {
    return str_cat(spec.intermediate_size, " FFN columns to share in units of ", kUnit);
  }
  return str_cat("a vocabulary of ", spec.vocab_size, " to share in units of ", kUnit);
}

}  // namespace

Status check_grid(const ModelSpec& spec, std::int64_t tp_size, std::int64_t pp_size) {
  const std::int64_t most_tp = max_tp(spec);
  const std::string fits =
      str_cat("; ", up_to("tp", most_tp), " and ", up_to("pp", spec.num_layers), " would");
  if (tp_size < 1 || tp_size > most_tp) {
    const std::string why =
        tp_size < 1 ? "it needs at least 1" : str_cat("it has ", tp_limit(spec, tp_size));
    return invalid_argument(str_cat("tp ", tp_size, " does not fit ", spec.name, ": ", why, fits));
  }
  if (pp_size < 1 || pp_size > spec.num_layers) {
    const std::string why =
        pp_size < 1 ? "it needs at least 1" : str_cat("it has ", plural(spec.num_layers, "layer"));
    return invalid_argument(str_cat("pp ", pp_size, " does not fit ", spec.name, ": ", why, fits));
  }
  return {};
}

TensorSplit split_tensors(const ModelSpec& spec, std::int64_t tp_size) {
  INVARIANT(check_grid(spec, tp_size, 1).ok()) << check_grid(spec, tp_size, 1).message();
  TensorSplit split;
  split.kv_heads = split_evenly(spec.num_kv_heads, tp_size);
  split.vocab = split_evenly(spec.vocab_size, tp_size, kUnit);
  const auto share = static_cast<double>(layer_cost(spec)) / static_cast<double>(tp_size);
  std::vector<double> weights;
  for (const Range& heads : split.kv_heads) {
    const auto rest = share - static_cast<double>(heads.size() * kv_head_cost(spec));
    // A rank whose heads alone are more than its share still needs a positive weight; it gets one
    // unit.
    weights.push_back(std::max(rest, 1e-6 * share));
  }
  split.ffn = split_by_weight(spec.intermediate_size, weights, kUnit);
  return split;
}

Partition split_layers(const ModelSpec& spec, std::int64_t pp_size) {
  INVARIANT(check_grid(spec, 1, pp_size).ok()) << check_grid(spec, 1, pp_size).message();
  const auto layer = static_cast<double>(layer_cost(spec));
  // The embedding reads one row a token, the head multiplies by all of them.
  const auto embedding = static_cast<double>(spec.hidden_size);
  const auto head = static_cast<double>(spec.vocab_size * spec.hidden_size);
  const double share = (layer * static_cast<double>(spec.num_layers) + embedding + head) /
                       static_cast<double>(pp_size);
  std::vector<double> weights(static_cast<std::size_t>(pp_size), share);
  weights.front() -= embedding;
  weights.back() -= head;
  for (double& weight : weights)
    weight = std::max(weight, 1e-6 * share);
  return split_by_weight(spec.num_layers, weights);
}

}  // namespace brigade::model
