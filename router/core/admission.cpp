// SPDX-License-Identifier: Apache-2.0
#include "router/core/admission.h"

#include <algorithm>
#include <cmath>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

constexpr double kMaxRetryAfterS = 60;
constexpr std::uint32_t kUnknownRetryAfterS = 5;
constexpr std::uint32_t kStandingPart = 8;  ///< of the slots, one in so many

Status full(std::uint64_t count, const char* what, std::uint64_t limit) {
  return resource_exhausted(
      str_cat("the queue is full: ", count, ' ', what, " wait, at most ", limit));
}

}  // namespace

Status check_queue_bounds(const RouterConfig& config, const QueueLoad& load, std::uint64_t cost,
                          Duration to_deadline) {
  if (load.requests >= config.max_queued_requests) {
    return full(load.requests, "requests", config.max_queued_requests);
  }
  if (load.tokens + cost > config.max_queued_tokens) {
    return full(load.tokens, "tokens", config.max_queued_tokens);
  }
  if (load.tenant_requests >= config.max_queued_requests_per_tenant) {
    return full(load.tenant_requests, "requests of yours", config.max_queued_requests_per_tenant);
  }
  if (load.tenant_tokens + cost > config.max_queued_tokens_per_tenant) {
    return full(load.tenant_tokens, "tokens of yours", config.max_queued_tokens_per_tenant);
  }
  if (!load.wait_s) return {};
  const double deadline_s = std::chrono::duration<double>(to_deadline).count();
  const double longest_s = std::chrono::duration<double>(config.max_queue_delay).count();
  if (*load.wait_s > longest_s) {
    return resource_exhausted(str_cat("the queue is too long: this request would wait for about ",
                                      *load.wait_s, " s, at most ", longest_s));
  }
  if (load.standing && load.tenant_requests >= load.standing->requests &&
      *load.wait_s > load.standing->wait_s) {
    return resource_exhausted(
        str_cat("there is more to do than can be done: this request would wait for about ",
                *load.wait_s, " s, at most ", load.standing->wait_s, " while the queue stands"));
  }
  if (*load.wait_s > deadline_s) {
    return resource_exhausted(str_cat("the queue is too long: this request would wait for about ",
                                      *load.wait_s, " s, past its deadline of ", deadline_s));
  }
  return {};
}

std::uint64_t may_always_wait(std::uint32_t max_seqs) {
  return std::clamp(max_seqs / kStandingPart, 4U, 16U);
}

std::optional<double> expected_wait_s(std::uint64_t ahead, std::uint64_t cost, double service_s,
                                      Slots slots) {
  if (slots.all == 0) return std::nullopt;
  const double num_ahead = static_cast<double>(ahead) / static_cast<double>(cost);
  return num_ahead * service_s / static_cast<double>(slots.all);
}

std::optional<StandingBound> standing_bound(const DrainRate& rate, Slots slots,
                                            std::optional<double> service_s, TimePoint now) {
  const double most = static_cast<double>(slots.in_use) / kStandingPart;
  std::optional<double> wait_s = rate.seconds_for_requests(most, now);
  if (!wait_s && service_s) wait_s = *service_s / kStandingPart;
  if (!wait_s) return std::nullopt;
  return StandingBound{.requests = slots.may_wait, .wait_s = *wait_s};
}

std::uint32_t retry_after_s(std::optional<double> wait_s) {
  if (!wait_s) return kUnknownRetryAfterS;
  return static_cast<std::uint32_t>(std::clamp(std::ceil(*wait_s), 1.0, kMaxRetryAfterS));
}

}  // namespace brigade::router
