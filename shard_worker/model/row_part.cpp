// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/row_part.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "common/base/check.h"

namespace brigade::worker {
namespace {

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

/// Any of 16 values is above `floor`; without a branch, for vector code.
bool any_above(const float* values, float floor) {
  std::uint32_t any = 0;
  for (std::size_t lane = 0; lane < 16; ++lane)
    any |= values[lane] > floor ? 1U : 0U;
  return any != 0;
}

/// The best `wanted` of `logits`, best first, without the impossible ones. True when those are all.
bool find_best(std::span<const float> logits, std::int64_t first_token, std::size_t wanted,
               std::vector<Candidate>& best) {
  best.clear();
  bool all = true;
  const auto offer = [&](std::size_t i) {
    // Ids rise, so an equal logit is worse than those kept.
    const float floor = best.size() < wanted ? kMinusInfinity : best.front().logit;
    if (!(logits[i] > floor)) {
      all = all && logits[i] == kMinusInfinity;
      return;
    }
    if (best.size() == wanted) {
      std::pop_heap(best.begin(), best.end(), better);
      best.pop_back();
      all = false;
    }
    best.push_back(
        {.logit = logits[i],
         .raw = logits[i],
         .token = static_cast<std::int32_t>(first_token + static_cast<std::int64_t>(i))});
    std::push_heap(best.begin(), best.end(), better);
  };
  std::size_t i = 0;
  while (i < logits.size() && best.size() < wanted)
    offer(i++);
  if (best.size() == wanted) {
    for (; i + 16 <= logits.size(); i += 16) {
      if (any_above(&logits[i], best.front().logit)) {
        for (std::size_t lane = 0; lane < 16; ++lane)
          offer(i + lane);
      } else {
        all = all && !any_above(&logits[i], kMinusInfinity);
      }
    }
  }
  while (i < logits.size())
    offer(i++);
  std::sort(best.begin(), best.end(), better);
  return all;
}

/// The draw needs the sum over the whole vocabulary: no cut bounds what may be drawn to the best.
bool needs_total(const wire::SequenceAdmit& params) {
  return params.top_k == 0 && (params.controls == nullptr || params.controls->min_p == 0);
}

void add_weights(std::span<const float> logits, double temperature, RowPart& part) {
  for (const float logit : logits) {
    const double x = (static_cast<double>(logit) - part.peak) / temperature;
    const double weight = std::exp(x);
    part.weight_sum += weight;
    if (weight > 0) part.moment += weight * x;  // 0 times infinity is no number
  }
}

/// The first entry of a token in `raw` is what it was at first.
void restore_raw(std::vector<RawLogit>& raw, std::vector<Candidate>& candidates) {
  const auto by_token = [](const RawLogit& a, const RawLogit& b) { return a.token < b.token; };
  std::stable_sort(raw.begin(), raw.end(), by_token);
  for (Candidate& candidate : candidates) {
    const auto at =
        std::lower_bound(raw.begin(), raw.end(), RawLogit{.token = candidate.token}, by_token);
    if (at != raw.end() && at->token == candidate.token) candidate.raw = at->logit;
  }
}

/// The scalars of a RowPart as they travel; candidates follow, the top ones first.
struct Header {
  double raw_sum = 0;
  double weight_sum = 0;
  double moment = 0;
  float raw_peak = 0;
  float target = 0;
  float peak = 0;
  std::uint32_t finite = 0;
  std::uint32_t complete = 0;
  std::uint32_t num_top = 0;
  std::uint32_t num_candidates = 0;
  std::uint32_t unused = 0;
};
static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) % sizeof(float) == 0);
static_assert(std::is_trivially_copyable_v<Candidate> && sizeof(Candidate) == 3 * sizeof(float));

std::size_t max_candidates(const ScoreRow& row) {
  if (!row.sample) return 0;
  return draws(row) ? kMaxCandidates : 1;
}

}  // namespace

void take_sum(const kernels::LogitSum& sum, RowPart& part) {
  part.finite = sum.finite;
  part.raw_peak = part.peak = sum.peak;
  part.raw_sum = sum.sum;
  part.target = sum.target;
  part.weight_sum = part.moment = 0;
  part.complete = false;
  part.top.clear();
  part.candidates.clear();
}

void look_raw(const ScoreRow& row, Range vocab, std::span<const float> logits,
              const kernels::LogitSum& sum, RowPart& part) {
  INVARIANT_EQ(static_cast<std::int64_t>(logits.size()), vocab.size());
  const std::int32_t count = num_logprobs(row);
  if (count >= 0) {
    take_sum(sum, part);
  } else {
    const Peak peak = find_peak(logits);
    take_sum({.peak = peak.value, .finite = peak.finite}, part);
  }
  if (!part.finite) return;
  if (count > 0) {
    (void)find_best(logits, vocab.begin, static_cast<std::size_t>(count), part.top);
  }
  if (!row.sample && vocab.contains(row.target)) {
    part.target = logits[static_cast<std::size_t>(row.target - vocab.begin)];
  }
}

void look_allowed(const ScoreRow& row, Range vocab, std::span<const float> logits,
                  std::vector<RawLogit>& raw, RowPart& part) {
  part.peak = find_peak(logits).value;
  part.complete = part.peak == kMinusInfinity;
  if (part.complete) return;
  if (!draws(row)) {
    const auto at = std::find(logits.begin(), logits.end(), part.peak) - logits.begin();
    part.candidates.push_back({.logit = part.peak,
                               .raw = part.peak,
                               .token = static_cast<std::int32_t>(vocab.begin + at)});
  } else {
    part.complete = find_best(logits, vocab.begin, kMaxCandidates, part.candidates);
    if (needs_total(*row.params)) add_weights(logits, row.params->temperature, part);
  }
  if (num_logprobs(row) >= 0 && !raw.empty()) restore_raw(raw, part.candidates);
}

std::size_t packed_floats(const ScoreRow& row) {
  const auto num_top = static_cast<std::size_t>(std::max(num_logprobs(row), 0));
  return (sizeof(Header) + (num_top + max_candidates(row)) * sizeof(Candidate)) / sizeof(float);
}

void pack(const RowPart& part, std::span<float> floats) {
  const Header header{.raw_sum = part.raw_sum,
                      .weight_sum = part.weight_sum,
                      .moment = part.moment,
                      .raw_peak = part.raw_peak,
                      .target = part.target,
                      .peak = part.peak,
                      .finite = part.finite ? 1U : 0U,
                      .complete = part.complete ? 1U : 0U,
                      .num_top = static_cast<std::uint32_t>(part.top.size()),
                      .num_candidates = static_cast<std::uint32_t>(part.candidates.size())};
  auto* out = reinterpret_cast<std::byte*>(floats.data());
  const std::size_t top_bytes = part.top.size() * sizeof(Candidate);
  const std::size_t candidate_bytes = part.candidates.size() * sizeof(Candidate);
  INVARIANT_LE(sizeof(Header) + top_bytes + candidate_bytes, floats.size_bytes());
  std::memcpy(out, &header, sizeof(Header));
  if (top_bytes > 0) std::memcpy(out + sizeof(Header), part.top.data(), top_bytes);
  if (candidate_bytes > 0) {
    std::memcpy(out + sizeof(Header) + top_bytes, part.candidates.data(), candidate_bytes);
  }
}

void unpack(std::span<const float> floats, RowPart& part) {
  Header header;
  const auto* in = reinterpret_cast<const std::byte*>(floats.data());
  std::memcpy(&header, in, sizeof(Header));
  part.raw_sum = header.raw_sum;
  part.weight_sum = header.weight_sum;
  part.moment = header.moment;
  part.raw_peak = header.raw_peak;
  part.target = header.target;
  part.peak = header.peak;
  part.finite = header.finite != 0;
  part.complete = header.complete != 0;
  part.top.resize(header.num_top);
  part.candidates.resize(header.num_candidates);
  const std::size_t top_bytes = part.top.size() * sizeof(Candidate);
  const std::size_t candidate_bytes = part.candidates.size() * sizeof(Candidate);
  INVARIANT_LE(sizeof(Header) + top_bytes + candidate_bytes, floats.size_bytes());
  if (top_bytes > 0) std::memcpy(part.top.data(), in + sizeof(Header), top_bytes);
  if (candidate_bytes > 0) {
    std::memcpy(part.candidates.data(), in + sizeof(Header) + top_bytes, candidate_bytes);
  }
}

}  // namespace brigade::worker
