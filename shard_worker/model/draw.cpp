// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/draw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/check.h"

namespace brigade::worker {
namespace {

/// One draw under way: the best `size_` of the list are left; `open_` when more may be left beyond
/// the list's end.
class Draw final {
 public:
  Draw(const wire::SequenceAdmit& params, const DrawWeights& weights, CandidateList& list)
      : params_(params), weights_(weights), list_(list), size_(list.size()) {
    open_ = !list.complete();
    mass_ = weights.total;
  }

  /// Each is false when the list does not reach far enough.
  [[nodiscard]] bool cut_to_best();
  [[nodiscard]] bool cut_to_top_p();
  [[nodiscard]] bool cut_to_typical(double typical_p);
  [[nodiscard]] std::optional<Candidate> pick(double uniform);

 private:
  [[nodiscard]] double exponent(std::size_t i) {
    return (static_cast<double>(list_.at(i).logit) - weights_.peak) / params_.temperature;
  }
  [[nodiscard]] double weight(std::size_t i) { return std::exp(exponent(i)); }
  [[nodiscard]] std::size_t index(std::size_t i) const { return order_.empty() ? i : order_[i]; }
  [[nodiscard]] double entropy(double log_mass);

  const wire::SequenceAdmit& params_;
  const DrawWeights& weights_;
  CandidateList& list_;
  std::size_t size_;
  bool open_ = false;
  bool whole_ = true;               ///< nothing was cut yet: weights_ has the sums
  double mass_ = 0;                 ///< of what is left
  std::vector<std::size_t> order_;  ///< places in the list, when they are not in order
};

/// min_p and top_k.
bool Draw::cut_to_best() {
  const double min_p = params_.controls == nullptr ? 0 : params_.controls->min_p;
  if (min_p <= 0 && params_.top_k <= 0) return true;
  if (min_p > 0) {
    std::size_t kept = 1;  // the best always passes, whatever 1 * min_p rounds to
    while (kept < size_ && weight(kept) >= min_p)
      ++kept;
    if (kept < size_) open_ = false;
    size_ = kept;
  }
  if (params_.top_k > 0 && static_cast<std::size_t>(params_.top_k) <= size_) {
    size_ = static_cast<std::size_t>(params_.top_k);
    open_ = false;
  }
  if (open_) return false;
  whole_ = false;
  mass_ = 0;
  for (std::size_t i = 0; i < size_; ++i)
    mass_ += weight(i);
  return true;
}

bool Draw::cut_to_top_p() {
  if (params_.top_p >= 1) return true;
  const double wanted = params_.top_p * mass_;
  double kept = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    kept += weight(i);
    if (kept < wanted) continue;
    size_ = i + 1;
    open_ = false;
    break;
  }
  if (open_) return false;
  whole_ = false;
  mass_ = kept;
  return true;
}

/// Of p = w / mass over what is left.
double Draw::entropy(double log_mass) {
  if (whole_) return log_mass - weights_.moment / weights_.total;
  double sum = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const double x = exponent(i);
    const double p = std::exp(x) / mass_;
    if (p > 0) sum += p * (log_mass - x);
  }
  return sum;
}

bool Draw::cut_to_typical(double typical_p) {
  if (typical_p >= 1) return true;
  const double log_mass = std::log(mass_);
  const double h = entropy(log_mass);
  std::vector<double> distance(size_);
  for (std::size_t i = 0; i < size_; ++i)
    distance[i] = std::abs(log_mass - exponent(i) - h);
  std::vector<std::size_t> order(size_);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return distance[a] < distance[b]; });
  // What lies beyond the list is rarer than its last: at least so far from the entropy.
  const double beyond = open_ ? log_mass - exponent(size_ - 1) - h : 0;
  double kept = 0;
  std::size_t count = 0;
  while (count < size_ && kept < typical_p * mass_) {
    if (open_ && distance[order[count]] >= beyond) return false;
    kept += weight(order[count++]);
  }
  if (open_ && kept < typical_p * mass_) return false;
  order.resize(count);
  order_ = std::move(order);
  size_ = count;
  open_ = false;
  whole_ = false;
  mass_ = kept;
  return true;
}

std::optional<Candidate> Draw::pick(double uniform) {
  const double target = uniform * mass_;
  double sum = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    sum += weight(index(i));
    if (sum > target) return list_.at(index(i));
  }
  if (open_) return std::nullopt;
  // Rounding left the sum at or below the target: the last token that has any weight.
  std::size_t last = size_ - 1;
  while (last > 0 && weight(index(last)) == 0)
    --last;
  return list_.at(index(last));
}

}  // namespace

void CandidateList::clear() {
  items_.clear();
  num_sorted_ = 0;
  finish(0, false);
}

void CandidateList::finish(std::size_t num_exact, bool complete) {
  INVARIANT_LE(num_exact, items_.size());
  num_exact_ = num_exact;
  complete_ = complete;
}

const Candidate& CandidateList::at(std::size_t i) {
  constexpr std::size_t kFirst = 64;
  INVARIANT_LT(i, num_exact_);
  while (num_sorted_ <= i) {
    // Few tokens carry nearly all probability: sort little first, then ever more.
    const std::size_t end = std::min(std::max({i + 1, kFirst, 4 * num_sorted_}), items_.size());
    const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(num_sorted_);
    const auto middle = items_.begin() + static_cast<std::ptrdiff_t>(end);
    if (middle != items_.end()) std::nth_element(begin, middle, items_.end(), better);
    std::sort(begin, middle, better);
    num_sorted_ = end;
  }
  return items_[i];
}

std::optional<Candidate> draw(const wire::SequenceAdmit& params, double uniform,
                              const DrawWeights& weights, CandidateList& list) {
  INVARIANT_NE(list.size(), std::size_t{0});
  Draw draw(params, weights, list);
  const double typical_p = params.controls == nullptr ? 1 : params.controls->typical_p;
  if (!draw.cut_to_best() || !draw.cut_to_top_p() || !draw.cut_to_typical(typical_p)) {
    return std::nullopt;
  }
  return draw.pick(uniform);
}

}  // namespace brigade::worker
