// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/base/strings.h"

namespace brigade::worker {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// The largest value, and whether all are finite; in lanes, which the compiler turns into vector
/// code.
struct Peak {
  float value = kMinusInfinity;
  bool finite = true;
};

Peak find_peak(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;
  constexpr std::uint32_t kExponent = 0x7f800000U;
  std::array<float, kLanes> best;
  best.fill(kMinusInfinity);
  std::array<std::uint32_t, kLanes> bad{};
  const auto look = [&](std::size_t lane, float value) {
    best[lane] = value > best[lane] ? value : best[lane];
    bad[lane] |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  };
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      look(lane, values[i + lane]);
  }
  for (; i < values.size(); ++i)
    look(0, values[i]);
  Peak peak;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    peak.value = std::max(peak.value, best[lane]);
    peak.finite = peak.finite && bad[lane] == 0;
  }
  return peak;
}

/// log(sum(exp(logits))).
double log_sum_exp(std::span<const float> logits, float peak) {
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(static_cast<double>(logit) - peak);
  return std::log(sum) + peak;
}

std::int32_t first_index_of(std::span<const float> logits, float value) {
  return static_cast<std::int32_t>(std::find(logits.begin(), logits.end(), value) - logits.begin());
}

}  // namespace

Sampler::Sampler(std::int64_t vocab_size) : candidates_(static_cast<std::size_t>(vocab_size)) {}

bool Sampler::better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

Result<ScoredToken> Sampler::score(const ScoreRow& row, std::span<float> logits) {
  INVARIANT_EQ(logits.size(), candidates_.size());
  INVARIANT(row.params != nullptr) << "row " << row.row;
  const Peak peak = find_peak(logits);
  if (!peak.finite) {
    return internal_error(
        str_cat("logits of sequence ", row.seq, " at position ", row.position, " are not finite"));
  }
  ScoredToken scored{.seq = row.seq, .position = row.position, .sampled = row.sample};
  scored.logprob = std::numeric_limits<float>::quiet_NaN();
  const std::int32_t count =
      row.sample ? row.params->num_logprobs : row.params->num_prompt_logprobs;
  const double log_sum = count >= 0 ? log_sum_exp(logits, peak.value) : 0;
  if (count > 0) add_top(logits, count, log_sum, scored);
  scored.token = row.target;
  if (row.sample) {
    if (row.position < row.params->banned_until_position) {
      for (std::int32_t token : row.params->banned_tokens) {
        if (token >= 0 && static_cast<std::size_t>(token) < logits.size()) {
          logits[static_cast<std::size_t>(token)] = kMinusInfinity;
        }
      }
    }
    scored.token = draw(row, logits);
  }
  if (scored.token < 0 || static_cast<std::size_t>(scored.token) >= logits.size()) {
    return invalid_argument(str_cat("token ", scored.token, " of sequence ", row.seq,
                                    " is not in the vocabulary of ", logits.size()));
  }
  const float chosen = logits[static_cast<std::size_t>(scored.token)];
  if (count >= 0) scored.logprob = static_cast<float>(chosen - log_sum);
  return scored;
}

void Sampler::add_top(std::span<const float> logits, std::int32_t count, double log_sum,
                      ScoredToken& scored) {
  constexpr std::int32_t kMaxTop = 20;
  const auto wanted = std::min(static_cast<std::size_t>(std::min(count, kMaxTop)), logits.size());
  std::vector<Candidate> top;  // a heap with the worst in front
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate{logits[i], static_cast<std::int32_t>(i)};
    if (top.size() == wanted) {
      if (!better(candidate, top.front())) continue;
      std::pop_heap(top.begin(), top.end(), better);
      top.pop_back();
    }
    top.push_back(candidate);
    std::push_heap(top.begin(), top.end(), better);
  }
  std::sort(top.begin(), top.end(), better);
  for (const Candidate& candidate : top) {
    scored.top_tokens.push_back(candidate.token);
    scored.top_logprobs.push_back(static_cast<float>(candidate.logit - log_sum));
  }
}

void Sampler::sort_up_to(std::size_t count) {
  constexpr std::size_t kFirst = 64;
  count = std::min(count, candidates_.size());
  while (num_sorted_ < count) {
    // Few tokens carry nearly all probability: sort little first, then ever more.
    const std::size_t end =
        std::min(std::max({count, kFirst, 4 * num_sorted_}), candidates_.size());
    const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(num_sorted_);
    const auto middle = candidates_.begin() + static_cast<std::ptrdiff_t>(end);
    if (middle != candidates_.end()) {
      std::nth_element(begin, middle, candidates_.end(), better);
    }
    std::sort(begin, middle, better);
    num_sorted_ = end;
  }
}

std::int32_t Sampler::draw(const ScoreRow& row, std::span<const float> logits) {
  const wire::SequenceAdmit& params = *row.params;
  const float peak = find_peak(logits).value;
  if (peak == kMinusInfinity) return -1;  // every token is banned
  if (!(params.temperature > 0)) return first_index_of(logits, peak);

  const auto weight = [&](float logit) {
    return std::exp((static_cast<double>(logit) - peak) / params.temperature);
  };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates_[i] = {logits[i], static_cast<std::int32_t>(i)};
  }
  num_sorted_ = 0;
  std::size_t num_kept = candidates_.size();
  double kept = 0;  // sum of the weights that may be drawn
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < num_kept) {
    num_kept = static_cast<std::size_t>(params.top_k);
    sort_up_to(num_kept);
    for (std::size_t i = 0; i < num_kept; ++i)
      kept += weight(candidates_[i].logit);
  } else {
    for (float logit : logits)
      kept += weight(logit);
  }
  if (params.top_p < 1) {
    const double wanted = params.top_p * kept;
    kept = 0;
    for (std::size_t i = 0; i < num_kept; ++i) {
      sort_up_to(i + 1);
      kept += weight(candidates_[i].logit);
      if (kept >= wanted) num_kept = i + 1;
    }
  }
  const double target = random_uniform(params.seed, row.position) * kept;
  double sum = 0;
  for (std::size_t i = 0; i < num_kept; ++i) {
    sort_up_to(i + 1);
    sum += weight(candidates_[i].logit);
    if (sum > target) return candidates_[i].token;
  }
  // Rounding left the sum at or below the target: the last token that has any weight.
  std::size_t last = num_kept - 1;
  while (last > 0 && weight(candidates_[last].logit) == 0)
    --last;
  return candidates_[last].token;
}

}  // namespace brigade::worker
