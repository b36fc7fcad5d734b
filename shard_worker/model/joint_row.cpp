// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/joint_row.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/random.h"

namespace brigade::worker {

void JointRow::join(const ScoreRow& row, std::span<const RowPart> parts) {
  finite_ = true;
  float peak = kMinusInfinity;
  raw_peak_ = target_ = kMinusInfinity;
  drawn_.reset();
  top_.clear();
  for (const RowPart& part : parts) {
    finite_ = finite_ && part.finite;
    raw_peak_ = std::max(raw_peak_, part.raw_peak);
    peak = std::max(peak, part.peak);
    target_ = std::max(target_, part.target);
    top_.insert(top_.end(), part.top.begin(), part.top.end());
  }
  std::sort(top_.begin(), top_.end(), better);
  top_.resize(std::min(top_.size(), static_cast<std::size_t>(std::max(num_logprobs(row), 0))));
  raw_sum_ = 0;
  weights_ = {.peak = peak};
  for (const RowPart& part : parts) {
    if (part.raw_peak != kMinusInfinity) {
      raw_sum_ += part.raw_sum * std::exp(static_cast<double>(part.raw_peak) - raw_peak_);
    }
    if (part.peak == kMinusInfinity || !draws(row)) continue;
    // Weights are relative to the largest logit: w = e^d w' and w x = e^d w' (x' + d).
    const double d = (static_cast<double>(part.peak) - peak) / row.params->temperature;
    const double scale = std::exp(d);
    weights_.total += scale * part.weight_sum;
    if (scale > 0) weights_.moment += scale * (part.moment + d * part.weight_sum);
  }
  join_candidates(parts);
}

/// The best of all ranks. Past the worst that some rank kept of many, others may be missing.
void JointRow::join_candidates(std::span<const RowPart> parts) {
  list_.clear();
  std::optional<Candidate> floor;
  for (const RowPart& part : parts) {
    for (const Candidate& candidate : part.candidates)
      list_.add(candidate);
    if (part.complete || part.candidates.empty()) continue;
    if (!floor || better(part.candidates.back(), *floor)) floor = part.candidates.back();
  }
  std::size_t num_exact = 0;
  for (const RowPart& part : parts) {
    num_exact += static_cast<std::size_t>(std::count_if(
        part.candidates.begin(), part.candidates.end(),
        [&](const Candidate& candidate) { return !floor || !better(*floor, candidate); }));
  }
  list_.finish(num_exact, !floor.has_value());
}

std::optional<Candidate> JointRow::draw_from_list(const ScoreRow& row) {
  const double uniform = random_uniform(row.params->seed, row.position);
  return draw(*row.params, uniform, weights_, list_);
}

bool JointRow::decide(const ScoreRow& row) {
  if (!row.sample || !finite_ || list_.size() == 0) return true;
  drawn_ = draws(row) ? draw_from_list(row) : list_.at(0);
  return drawn_.has_value();
}

void JointRow::decide_from(const ScoreRow& row, std::span<const float> logits) {
  list_.clear();
  std::size_t count = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == kMinusInfinity) continue;
    list_.add({.logit = logits[i], .raw = logits[i], .token = static_cast<std::int32_t>(i)});
    ++count;
  }
  list_.finish(count, /*complete=*/true);
  drawn_ = draw_from_list(row);
  INVARIANT(drawn_.has_value()) << "a whole row of sequence " << row.seq << " was not enough";
}

void JointRow::set_raw(std::span<const float> logits) {
  drawn_->raw = logits[static_cast<std::size_t>(drawn_->token)];
}

ScoredToken JointRow::result(const ScoreRow& row) const {
  ScoredToken scored{.seq = row.seq, .position = row.position, .sampled = row.sample};
  scored.logprob = std::numeric_limits<float>::quiet_NaN();
  scored.token = row.sample ? 0 : row.target;
  if (!finite_) {
    scored.fault = wire::kLogitsNotFinite;
    return scored;
  }
  if (row.sample && !drawn_) {
    scored.fault = wire::kNothingAllowed;
    return scored;
  }
  if (drawn_) scored.token = drawn_->token;
  if (num_logprobs(row) < 0) return scored;
  const double log_sum = std::log(raw_sum_) + raw_peak_;
  scored.logprob = static_cast<float>((row.sample ? drawn_->raw : target_) - log_sum);
  for (const Candidate& candidate : top_) {
    scored.top_tokens.push_back(candidate.token);
    scored.top_logprobs.push_back(static_cast<float>(candidate.raw - log_sum));
  }
  return scored;
}

}  // namespace brigade::worker
