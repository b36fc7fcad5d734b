// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "common/model/spec.h"

namespace brigade::model {
namespace {

/// Every weight form can be cut at multiples of this, in rows (panels) and in columns (blocks).
constexpr std::int64_t kUnit = 32;

/// Tokens of context whose keys and values a layer is thought to read for each new one: what makes
/// KV count beside weights when stages are cut.
constexpr std::int64_t kUsualContext = 1024;

std::int64_t units_of(std::int64_t size) {
  return (size + kUnit - 1) / kUnit;
}

/// Things of `width` columns in the fewest that are whole units together.
std::int64_t in_whole_units(std::int64_t width) {
  return kUnit / std::gcd(width, kUnit);
}

/// Ranks that the query heads of one KV head can be shared out to: 1 where its columns are not
/// whole units, since its neighbours' would begin inside one.
std::int64_t ranks_per_kv_head(const ModelSpec& spec) {
  const std::int64_t group = spec.heads_per_kv_head();
  if (group * spec.head_dim % kUnit != 0) return 1;
  const std::int64_t together = in_whole_units(spec.head_dim);
  return (group + together - 1) / together;
}

/// KV heads that stay together.
std::int64_t kv_heads_together(const ModelSpec& spec) {
  return in_whole_units(spec.heads_per_kv_head() * spec.head_dim);
}

std::int64_t max_head_ranks(const ModelSpec& spec) {
  const std::int64_t together = kv_heads_together(spec);
  return (spec.num_kv_heads + together - 1) / together * ranks_per_kv_head(spec);
}

/// The narrowest matrix whose columns all ranks share.
std::int64_t narrowest_ffn(const ModelSpec& spec) {
  if (spec.experts.num_experts == 0) return spec.intermediate_size;
  return std::min(spec.intermediate_size, spec.experts.intermediate_size);
}

std::int64_t max_tp(const ModelSpec& spec) {
  return std::min({max_head_ranks(spec), units_of(narrowest_ffn(spec)), units_of(spec.vocab_size)});
}

std::string up_to(std::string_view what, std::int64_t max) {
  return max == 1 ? str_cat(what, " 1") : str_cat(what, " 1 to ", max);
}

std::string plural(std::int64_t count, std::string_view what) {
  return str_cat(count, " ", what, count == 1 ? "" : "s");
}

/// Why tp_size is too much: what there is least of.
std::string tp_limit(const ModelSpec& spec, std::int64_t tp_size) {
  if (tp_size > spec.num_heads) return plural(spec.num_heads, "head");
  if (tp_size > max_head_ranks(spec)) {
    return str_cat(plural(spec.num_heads, "head"), " of ", spec.head_dim, " columns, ",
                   spec.heads_per_kv_head(), " a KV head, to share in units of ", kUnit);
  }
  if (tp_size > units_of(narrowest_ffn(spec))) {
    return str_cat(narrowest_ffn(spec), " FFN columns to share in units of ", kUnit);
  }
  return str_cat("a vocabulary of ", spec.vocab_size, " to share in units of ", kUnit);
}

/// Rows of q and columns of o of `heads`, rows of k and v of `kv_heads`: weights that meet each
/// token.
std::int64_t attention_cost(const ModelSpec& spec, std::int64_t heads, std::int64_t kv_heads) {
  return 2 * (heads + kv_heads) * spec.head_dim * spec.hidden_size;
}

std::int64_t dense_cost(const ModelSpec& spec) {
  return 3 * spec.hidden_size * spec.intermediate_size;
}

std::int64_t expert_cost(const ModelSpec& spec) {
  return 3 * spec.hidden_size * spec.experts.intermediate_size * spec.experts.num_used;
}

/// Heads of each rank, and the KV heads they read.
void split_heads(const ModelSpec& spec, std::int64_t tp_size, TensorSplit& split) {
  const std::int64_t group = spec.heads_per_kv_head();
  if (tp_size <= spec.num_kv_heads || ranks_per_kv_head(spec) == 1) {
    split.kv_heads = split_evenly(spec.num_kv_heads, tp_size, kv_heads_together(spec));
    for (const Range& kv : split.kv_heads)
      split.heads.push_back({kv.begin * group, kv.end * group});
    return;
  }
  const Partition ranks = split_evenly(tp_size, spec.num_kv_heads);
  for (std::int64_t kv = 0; kv < spec.num_kv_heads; ++kv) {
    const std::int64_t sharers = ranks[static_cast<std::size_t>(kv)].size();
    for (const Range& heads : split_evenly(group, sharers, in_whole_units(spec.head_dim))) {
      split.heads.push_back({kv * group + heads.begin, kv * group + heads.end});
      split.kv_heads.push_back({kv, kv + 1});
    }
  }
}

/// Columns by rank that even out what attention gives each, when all of them cost `ffn_cost`.
Partition split_ffn(const ModelSpec& spec, const TensorSplit& split, std::int64_t columns,
                    std::int64_t ffn_cost) {
  std::vector<double> attention;
  for (std::size_t r = 0; r < split.heads.size(); ++r) {
    attention.push_back(
        static_cast<double>(attention_cost(spec, split.heads[r].size(), split.kv_heads[r].size())));
  }
  const double total =
      std::accumulate(attention.begin(), attention.end(), static_cast<double>(ffn_cost));
  const double share = total / static_cast<double>(attention.size());
  std::vector<double> weights;
  // A rank whose heads alone are more than its share still needs a positive weight; it gets one
  // unit.
  for (const double cost : attention)
    weights.push_back(std::max(share - cost, 1e-6 * share));
  return split_by_weight(columns, weights, kUnit);
}

/// Of the head: a parameter costs more than one of a layer. Quantised files keep it in more bits,
/// and each row's logits are summed up and drawn from. (SmolLM2, Q8_0 beside Q4_1, four rows a
/// step: the head took as long as 8.9 layers that have 8.0 times fewer parameters.)
double head_cost(const ModelSpec& spec) {
  return 1.4 * static_cast<double>(spec.vocab_size * spec.hidden_size);
}

double layer_cost(const ModelSpec& spec, const LayerSpec& layer) {
  const std::int64_t context =
      layer.window > 0 ? std::min(layer.window, kUsualContext) : kUsualContext;
  return static_cast<double>(attention_cost(spec, spec.num_heads, spec.num_kv_heads) +
                             2 * spec.num_heads * spec.head_dim * context +
                             (layer.has_experts ? expert_cost(spec) : dense_cost(spec)));
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
  split_heads(spec, tp_size, split);
  split.vocab = split_evenly(spec.vocab_size, tp_size, kUnit);
  split.ffn = split_ffn(spec, split, spec.intermediate_size, dense_cost(spec));
  if (spec.experts.num_experts > 0) {
    split.expert_ffn = split_ffn(spec, split, spec.experts.intermediate_size, expert_cost(spec));
  }
  return split;
}

Partition split_layers(const ModelSpec& spec, std::int64_t pp_size) {
  INVARIANT(check_grid(spec, 1, pp_size).ok()) << check_grid(spec, 1, pp_size).message();
  double rest = head_cost(spec);
  for (std::int64_t i = 0; i < spec.num_layers; ++i)
    rest += layer_cost(spec, spec.layer(i));
  // From the last stage on, which has the head: what it takes beyond its share, the others need not
  // make up for one by one.
  Partition stages(static_cast<std::size_t>(pp_size));
  std::int64_t end = spec.num_layers;
  for (std::int64_t stage = pp_size - 1; stage >= 0; --stage) {
    const double share = rest / static_cast<double>(stage + 1);
    double cost = stage == pp_size - 1 ? head_cost(spec) : 0;
    std::int64_t begin = end;
    // One layer at least, one left for each stage before; then until the next would be further from
    // the share than to stop.
    while (begin > stage) {
      const double next = layer_cost(spec, spec.layer(begin - 1));
      const bool nearer = std::abs(cost + next - share) < std::abs(cost - share);
      if (begin < end && stage > 0 && !nearer) break;
      cost += next;
      --begin;
    }
    stages[static_cast<std::size_t>(stage)] = {begin, end};
    rest -= cost;
    end = begin;
  }
  return stages;
}

}  // namespace brigade::model
