// SPDX-License-Identifier: Apache-2.0
#include "tests/shard_worker/model/plain_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "common/base/random.h"

namespace brigade::test {
namespace {

constexpr double kOut = -std::numeric_limits<double>::infinity();

std::vector<double> changed_logits(const std::vector<float>& logits,
                                   const wire::SamplingControls& c,
                                   const std::vector<std::int32_t>& output) {
  std::vector<double> out(logits.begin(), logits.end());
  std::set<std::int32_t> seen(output.begin(), output.end());
  seen.insert(c.prompt_tokens.begin(), c.prompt_tokens.end());
  for (const std::int32_t token : seen) {
    double& logit = out[static_cast<std::size_t>(token)];
    logit = logit > 0 ? logit / c.repetition_penalty : logit * c.repetition_penalty;
    const auto times = std::count(output.begin(), output.end(), token);
    logit -= static_cast<double>(c.frequency_penalty) * static_cast<double>(times);
    if (times > 0) logit -= c.presence_penalty;
  }
  for (const wire::TokenBias& bias : c.bias)
    out[static_cast<std::size_t>(bias.token)] += bias.bias;
  return out;
}

void mask(std::vector<double>& logits, const wire::SequenceAdmit& params,
          const wire::SamplingControls& c, const std::vector<std::int32_t>& output,
          std::uint32_t position) {
  const auto forbid = [&](std::int32_t token) { logits[static_cast<std::size_t>(token)] = kOut; };
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(logits.size()); ++i) {
    const auto& allowed = c.allowed_tokens;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), i) == allowed.end()) {
      forbid(i);
    }
  }
  for (std::vector<std::int32_t> word : c.bad_words) {
    const std::int32_t last = word.back();
    word.pop_back();
    if (word.size() > output.size()) continue;
    const std::vector<std::int32_t> end(output.end() - static_cast<std::ptrdiff_t>(word.size()),
                                        output.end());
    if (end == word) forbid(last);
  }
  if (position < params.banned_until_position) {
    for (const std::int32_t token : params.banned_tokens)
      forbid(token);
  }
}

struct Weighted {
  std::size_t token = 0;
  double weight = 0;
};

double total(const std::vector<Weighted>& items) {
  return std::accumulate(items.begin(), items.end(), 0.0,
                         [](double sum, const Weighted& item) { return sum + item.weight; });
}

/// The first of `items` that have `share` of the weight.
void keep_share(std::vector<Weighted>& items, double share) {
  const double wanted = share * total(items);
  double sum = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    sum += items[i].weight;
    if (sum >= wanted) return items.resize(i + 1);
  }
}

/// What may be drawn, in the order of the draw.
std::vector<Weighted> survivors(const std::vector<double>& logits,
                                const wire::SequenceAdmit& params,
                                const wire::SamplingControls& c) {
  std::vector<Weighted> items;
  const double peak = *std::max_element(logits.begin(), logits.end());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != kOut) items.push_back({i, std::exp((logits[i] - peak) / params.temperature)});
  }
  std::stable_sort(items.begin(), items.end(), [&](const Weighted& a, const Weighted& b) {
    return logits[a.token] > logits[b.token];
  });
  std::erase_if(items, [&](const Weighted& item) { return item.weight < c.min_p; });
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < items.size()) {
    items.resize(static_cast<std::size_t>(params.top_k));
  }
  if (params.top_p < 1) keep_share(items, params.top_p);
  if (c.typical_p >= 1) return items;
  const double mass = total(items);
  double entropy = 0;
  for (const Weighted& item : items) {
    const double p = item.weight / mass;
    if (p > 0) entropy -= p * std::log(p);
  }
  const auto distance = [&](const Weighted& item) {
    return std::abs(-std::log(item.weight / mass) - entropy);
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const Weighted& a, const Weighted& b) { return distance(a) < distance(b); });
  keep_share(items, c.typical_p);
  return items;
}

std::vector<double> allowed_logits(const std::vector<float>& logits,
                                   const wire::SequenceAdmit& params,
                                   const std::vector<std::int32_t>& output,
                                   std::uint32_t position) {
  const wire::SamplingControls c = params.controls ? *params.controls : wire::SamplingControls{};
  std::vector<double> out = changed_logits(logits, c, output);
  mask(out, params, c, output, position);
  return out;
}

bool none(const std::vector<double>& logits) {
  return std::all_of(logits.begin(), logits.end(), [](double logit) { return logit == kOut; });
}

}  // namespace

std::vector<float> random_logits(std::int64_t size, std::uint64_t seed, double spread) {
  std::vector<float> logits(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(2 * spread * random_uniform(seed, i) - spread);
  }
  return logits;
}

std::vector<double> plain_distribution(const std::vector<float>& logits,
                                       const wire::SequenceAdmit& params,
                                       const std::vector<std::int32_t>& output,
                                       std::uint32_t position) {
  const std::vector<double> allowed = allowed_logits(logits, params, output, position);
  if (none(allowed)) return {};
  const auto items =
      survivors(allowed, params, params.controls ? *params.controls : wire::SamplingControls{});
  std::vector<double> p(logits.size());
  for (const Weighted& item : items)
    p[item.token] = item.weight / total(items);
  return p;
}

PlainResult plain_sample(const std::vector<float>& logits, const wire::SequenceAdmit& params,
                         const std::vector<std::int32_t>& output, std::uint32_t position) {
  const std::vector<double> allowed = allowed_logits(logits, params, output, position);
  if (none(allowed)) return {};
  std::size_t token = 0;
  if (params.temperature == 0) {
    token = static_cast<std::size_t>(std::max_element(allowed.begin(), allowed.end()) -
                                     allowed.begin());
  } else {
    const auto items =
        survivors(allowed, params, params.controls ? *params.controls : wire::SamplingControls{});
    const double target = random_uniform(params.seed, position) * total(items);
    double sum = 0;
    token = items.back().token;
    for (const Weighted& item : items) {
      sum += item.weight;
      if (sum <= target) continue;
      token = item.token;
      break;
    }
  }
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(static_cast<double>(logit));
  return {.token = static_cast<std::int32_t>(token), .logprob = logits[token] - std::log(sum)};
}

RandomCase::RandomCase(std::uint64_t seed, std::int64_t vocab_size) {
  std::uint64_t draws = 0;
  const auto uniform = [&] { return random_uniform(seed, 1000, draws++); };
  const auto chance = [&](double p) { return uniform() < p; };
  const auto token = [&] {
    return static_cast<std::int32_t>(uniform() * static_cast<double>(vocab_size));
  };
  const auto tokens = [&](std::size_t most) {
    std::vector<std::int32_t> list(static_cast<std::size_t>(uniform() * static_cast<double>(most)));
    for (std::int32_t& one : list)
      one = token();
    return list;
  };
  params.seed = seed;
  params.num_logprobs = 0;
  position = static_cast<std::uint32_t>(100 * uniform());
  if (chance(0.8)) params.temperature = static_cast<float>(0.1 + 3 * uniform());
  if (chance(0.5)) params.top_k = 1 + static_cast<std::int32_t>(400 * uniform());
  if (chance(0.5)) params.top_p = static_cast<float>(0.05 + 0.95 * uniform());
  if (chance(0.5)) controls.min_p = static_cast<float>(0.3 * uniform() * uniform());
  if (chance(0.5)) controls.typical_p = static_cast<float>(0.05 + 0.95 * uniform());
  if (chance(0.5)) controls.repetition_penalty = static_cast<float>(0.5 + 1.5 * uniform());
  if (chance(0.5)) controls.presence_penalty = static_cast<float>(4 * uniform() - 2);
  if (chance(0.5)) controls.frequency_penalty = static_cast<float>(4 * uniform() - 2);
  if (chance(0.5)) {
    std::set<std::int32_t> biased;
    for (const std::int32_t one : tokens(20))
      biased.insert(one);
    for (const std::int32_t one : biased) {
      controls.bias.push_back({.token = one, .bias = static_cast<float>(20 * uniform() - 10)});
    }
  }
  if (chance(0.3)) controls.allowed_tokens = tokens(chance(0.2) ? 3 : 600);
  std::sort(controls.allowed_tokens.begin(), controls.allowed_tokens.end());
  controls.output_tokens = tokens(40);
  if (chance(0.5)) {
    for (const std::int32_t one : tokens(200))
      controls.bad_words.push_back({one});
    if (!controls.output_tokens.empty()) {
      controls.bad_words.push_back({controls.output_tokens.back(), token()});
    }
  }
  std::set<std::int32_t> prompt;
  if (controls.repetition_penalty != 1) {
    for (const std::int32_t one : tokens(60))
      prompt.insert(one);
  }
  controls.prompt_tokens.assign(prompt.begin(), prompt.end());
  if (chance(0.3)) {
    params.banned_until_position = 50;
    params.banned_tokens = tokens(10);
  }
}

}  // namespace brigade::test
