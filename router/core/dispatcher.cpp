// SPDX-License-Identifier: Apache-2.0
#include "router/core/dispatcher.h"

#include <algorithm>
#include <cmath>

namespace brigade::router {
namespace {

constexpr double kWindowS = 10;
constexpr double kMaxRetryAfterS = 60;

bool may_go_to(const LiveRequest& request, const PlacementTarget& target) {
  const Replica::Options& options = target.replica->options();
  if (options.model_index != request.model_index) return false;
  return target.accepts || (request.num_preemptions > 0 && request.replica == options.id);
}

}  // namespace

Replica* choose_replica(const std::map<ReplicaId, PlacementTarget>& targets,
                        const LiveRequest& request) {
  Replica* best = nullptr;
  for (const auto& [id, target] : targets) {
    Replica* replica = target.replica;
    if (!may_go_to(request, target) || !replica->can_take(request)) continue;
    if (best != nullptr) {
      const std::uint64_t load = replica->load_tokens();
      const std::uint64_t best_load = best->load_tokens();
      if (load > best_load) continue;
      if (load == best_load && replica->blocks().num_available() <= best->blocks().num_available())
        continue;
    }
    best = replica;
  }
  return best;
}

bool can_ever_be_placed(const std::map<ReplicaId, PlacementTarget>& targets,
                        const LiveRequest& request) {
  bool any = false;
  for (const auto& [id, target] : targets) {
    if (!target.accepts || target.replica->options().model_index != request.model_index) continue;
    if (target.replica->can_ever_hold(request)) return true;
    any = true;
  }
  return !any;
}

double DrainRate::decayed(TimePoint now) const {
  if (tokens_ == 0 || now <= since_) return tokens_;
  return tokens_ * std::exp(-std::chrono::duration<double>(now - since_).count() / kWindowS);
}

void DrainRate::add(std::uint64_t tokens, TimePoint now) {
  tokens_ = decayed(now) + static_cast<double>(tokens);
  since_ = now;
}

std::uint32_t DrainRate::retry_after_s(std::uint64_t queued_tokens, TimePoint now) const {
  const double rate = decayed(now) / kWindowS;
  const double seconds =
      rate > 0 ? std::ceil(static_cast<double>(queued_tokens) / rate) : kMaxRetryAfterS;
  return static_cast<std::uint32_t>(std::clamp(seconds, 1.0, kMaxRetryAfterS));
}

}  // namespace brigade::router
