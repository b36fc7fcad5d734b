// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/expert_ffn.h"

#include <algorithm>
#include <numeric>

namespace brigade::worker {
namespace {

std::size_t count(std::int64_t size) {
  return static_cast<std::size_t>(size);
}

}  // namespace

ExpertFfn::ExpertFfn(const model::ModelSpec& spec, const Shard& shard, kernels::Ops& ops,
                     std::int64_t max_step_tokens)
    : spec_(spec),
      ops_(ops),
      columns_(shard.expert_ffn.size()),
      chosen_(count(max_step_tokens * spec.experts.num_used)),
      shares_(chosen_.size()),
      first_(count(spec.experts.num_experts + 1)),
      rows_(chosen_.size()),
      row_shares_(chosen_.size()),
      logits_(max_step_tokens * spec.experts.num_experts),
      in_(max_step_tokens * spec.hidden_size),
      gate_up_(max_step_tokens * 2 * columns_),
      act_(max_step_tokens * columns_),
      out_(max_step_tokens * spec.hidden_size) {}

std::int64_t ExpertFfn::scratch_row(const model::ModelSpec& spec, const Shard& shard) {
  return 4 * spec.experts.num_used + spec.experts.num_experts + 2 * spec.hidden_size +
         3 * shard.expert_ffn.size();
}

void ExpertFfn::run(const LayerWeights& weights, const kernels::ConstMatrix& x,
                    const kernels::Matrix& out) {
  const std::size_t num_chosen = count(x.rows * spec_.experts.num_used);
  const kernels::Matrix logits = logits_.view(x.rows, spec_.experts.num_experts);
  ops_.linear(*weights.router, x, logits);
  ops_.route(spec_.experts, logits, std::span(chosen_).first(num_chosen),
             std::span(shares_).first(num_chosen));
  sort_rows(x.rows);
  ops_.clear(out);
  for (std::size_t e = 0; e < weights.experts.size(); ++e)
    run_expert(weights.experts[e], static_cast<std::int64_t>(e), x, out);
}

void ExpertFfn::sort_rows(std::int64_t num_tokens) {
  const std::size_t used = count(spec_.experts.num_used);
  const std::size_t num_chosen = count(num_tokens) * used;
  std::fill(first_.begin(), first_.end(), 0);
  for (std::size_t i = 0; i < num_chosen; ++i)
    ++first_[count(chosen_[i]) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  // Places are handed out from each expert's first row on, which moves first_[e] to where e + 1
  // begins; moved back below.
  for (std::size_t i = 0; i < num_chosen; ++i) {
    const std::size_t at = first_[count(chosen_[i])]++;
    rows_[at] = static_cast<std::int32_t>(i / used);
    row_shares_[at] = shares_[i];
  }
  std::move_backward(first_.begin(), first_.end() - 1, first_.end());
  first_[0] = 0;
}

void ExpertFfn::run_expert(const FfnWeights& weights, std::int64_t expert,
                           const kernels::ConstMatrix& x, const kernels::Matrix& out) {
  const std::size_t begin = first_[count(expert)];
  const std::size_t num_rows = first_[count(expert) + 1] - begin;
  if (num_rows == 0) return;
  const auto rows = std::span<const std::int32_t>(rows_).subspan(begin, num_rows);
  const auto height = static_cast<std::int64_t>(num_rows);
  const kernels::Matrix in = in_.view(height, spec_.hidden_size);
  const kernels::Matrix gate_up = gate_up_.view(height, 2 * columns_);
  const kernels::Matrix act = act_.view(height, columns_);
  const kernels::Matrix result = out_.view(height, spec_.hidden_size);
  ops_.gather_rows(x, rows, in);
  ops_.linear(*weights.gate_up, in, gate_up);
  ops_.gate(spec_.activation, gate_up, act);
  ops_.linear(*weights.down, act, result);
  ops_.scatter_add(result, rows, std::span<const float>(row_shares_).subspan(begin, num_rows), out);
}

}  // namespace brigade::worker
