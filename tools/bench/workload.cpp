// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/workload.h"

#include <algorithm>
#include <utility>

#include "common/base/random.h"

namespace brigade::tools {
namespace {

// What a seed is used for, so that no two draws share their randomness.
enum Use : std::uint64_t {
  kPromptLength = 1,
  kOutputLength,
  kGroup,
  kAbandon,
  kArrival,
  kPrefixWords,
  kOwnWords
};

std::uint64_t seed_for(std::uint64_t seed, Use use) {
  return random_bits(seed, use);
}

}  // namespace

Workload::Workload(WorkloadOptions options) : options_(std::move(options)) {
  if (options_.rate > 0) {
    arrivals_.emplace(options_.rate, options_.burst, seed_for(options_.seed, kArrival));
  }
}

std::optional<std::uint64_t> Workload::size() const {
  if (options_.trace.empty()) return options_.num_requests;
  const std::uint64_t lines = options_.trace.size();
  return std::min(lines, options_.num_requests.value_or(lines));
}

std::optional<PlannedRequest> Workload::next() {
  if (const auto end = size(); end && next_ >= *end) return std::nullopt;
  PlannedRequest request{.index = next_++};
  const std::uint64_t seed = options_.seed;
  if (!options_.trace.empty()) {
    const TraceLine& line = options_.trace[request.index];
    request.due_s = line.time_s;
    request.prompt_tokens = line.prompt_tokens;
    request.output_tokens = line.output_tokens;
    request.prefix_group = line.prefix_group;
  } else {
    request.prompt_tokens =
        options_.prompt_tokens.draw(seed_for(seed, kPromptLength), request.index);
    request.output_tokens =
        options_.output_tokens.draw(seed_for(seed, kOutputLength), request.index);
    if (options_.shared_prefix > 0) {
      request.prefix_group = static_cast<std::uint32_t>(
          random_bits(seed_for(seed, kGroup), request.index) % options_.prefix_groups);
    }
    if (arrivals_) request.due_s = arrivals_->next();
  }
  const std::uint64_t abandon = seed_for(seed, kAbandon);
  if (random_uniform(abandon, request.index) < options_.abandon) {
    const double part = random_uniform(abandon, request.index, /*draw=*/1);
    request.abandon_after =
        static_cast<std::uint32_t>(part * static_cast<double>(request.output_tokens));
  }
  return request;
}

std::vector<std::uint32_t> Workload::prompt(const PlannedRequest& request,
                                            std::uint32_t num_words) const {
  std::vector<std::uint32_t> words(request.prompt_tokens);
  // At least the last one is the request's own: a prompt that is cached whole has nothing to
  // compute.
  const std::uint32_t shared =
      request.prefix_group ? std::min(options_.shared_prefix, request.prompt_tokens - 1) : 0;
  const std::uint64_t prefix = seed_for(options_.seed, kPrefixWords);
  const std::uint64_t own = seed_for(options_.seed, kOwnWords);
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    const std::uint64_t bits = i < shared ? random_bits(prefix, request.prefix_group.value_or(0), i)
                                          : random_bits(own, request.index, i);
    words[i] = static_cast<std::uint32_t>(bits % num_words);
  }
  return words;
}

}  // namespace brigade::tools
