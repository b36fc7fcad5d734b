// SPDX-License-Identifier: Apache-2.0
#include "router/core/fair_queue.h"

#include <algorithm>

#include "common/base/check.h"
#include "router/core/planted_bug.h"

namespace brigade::router {
namespace {

/// Counters are in 1 / kUnit tokens, so that large weights do not round charges away.
constexpr std::uint64_t kUnit = 1024;

}  // namespace

FairQueue::FairQueue(Options options)
    : options_(std::move(options)), bucket_sizes_(options_.bucket_edges.size() + 1, 0) {
  INVARIANT(std::is_sorted(options_.bucket_edges.begin(), options_.bucket_edges.end()));
  INVARIANT_LT(options_.bucket_edges.size(), 63U);
  for (const auto& [name, weight] : options_.weights)
    INVARIANT(weight > 0) << "weight of tenant " << name;
}

std::size_t FairQueue::bucket_of(std::uint64_t num_uncached) const {
  const std::vector<std::uint32_t>& edges = options_.bucket_edges;
  return static_cast<std::size_t>(std::lower_bound(edges.begin(), edges.end(), num_uncached) -
                                  edges.begin());
}

const FairQueue::Tenant* FairQueue::find_tenant(const std::string& name) const {
  const auto it = tenant_numbers_.find(name);
  return it == tenant_numbers_.end() ? nullptr : &tenants_.at(it->second);
}

std::uint32_t FairQueue::weight_of(const std::string& name) const {
  const auto it = options_.weights.find(name);
  return it == options_.weights.end() ? 1 : it->second;
}

std::uint64_t FairQueue::find_or_add_tenant(const std::string& name) {
  const auto [it, is_new] = tenant_numbers_.emplace(name, next_tenant_);
  if (!is_new) return it->second;
  Tenant& tenant = tenants_[next_tenant_];
  tenant.name = name;
  tenant.weight = weight_of(name);
  tenant.credit = BurstCredit(options_.calm);
  tenant.served = floor_;
  rank(next_tenant_, tenant);
  return next_tenant_++;
}

void FairQueue::unrank(std::uint64_t number, const Tenant& tenant) {
  if (active_.erase({tenant.served, number}) > 0) active_weight_ -= tenant.weight;
  idle_.erase({tenant.served, number});
}

void FairQueue::rank(std::uint64_t number, const Tenant& tenant) {
  if (tenant.size > 0) {
    active_.emplace(tenant.served, number);
    active_weight_ += tenant.weight;
  } else if (tenant.num_running == 0) {
    idle_.emplace(tenant.served, number);
  }
}

/// After each change: the floor follows the lowest counter of those that wait, and who is not above
/// it and has nothing here need not be remembered: coming back it would start there.
void FairQueue::raise_floor() {
  if (!active_.empty()) floor_ = std::max(floor_, active_.begin()->first);
  while (!idle_.empty() && idle_.begin()->first <= floor_) {
    const std::uint64_t number = idle_.begin()->second;
    tenant_numbers_.erase(tenants_.at(number).name);
    tenants_.erase(number);
    idle_.erase(idle_.begin());
  }
}

void FairQueue::push(QueueItem item) {
  const std::uint64_t number = find_or_add_tenant(item.tenant);
  Tenant& tenant = tenants_.at(number);
  unrank(number, tenant);
  if (tenant.size == 0) {
    tenant.served = std::max(tenant.served, floor_);
    tenant.credit.observe(/*waiting=*/true, item.since);
  }
  Level& level = tenant.levels[item.priority];
  if (level.size == 0) level.buckets.resize(bucket_sizes_.size());
  const std::size_t index = bucket_of(item.num_uncached);
  Bucket& bucket = level.buckets[index];
  if (bucket.items.empty() && level.size > 0) {
    // As for tenants: a bucket that was empty starts at the lowest counter of the others.
    std::uint64_t lowest = ~std::uint64_t{0};
    for (const Bucket& other : level.buckets) {
      if (!other.items.empty()) lowest = std::min(lowest, other.served);
    }
    bucket.served = std::max(bucket.served, lowest);
  }
  const Place place{
      .tenant = number, .priority = item.priority, .bucket = index, .order = item.order};
  const bool is_new = places_.emplace(item.id, place).second;
  INVARIANT(is_new) << "request " << item.id << " queued twice";
  ++tenant.size;
  tenant.tokens += item.cost;
  ++level.size;
  ++bucket_sizes_[index];
  bucket.tokens += item.cost;
  tokens_ += item.cost;
  bucket.items.emplace(item.order, std::move(item));
  rank(number, tenant);
  raise_floor();
}

void FairQueue::push_front(QueueItem item) {
  const std::uint64_t order = item.order;
  const bool is_new = places_.emplace(item.id, Place{.bucket = kFront, .order = order}).second;
  INVARIANT(is_new) << "request " << item.id << " queued twice";
  ++bucket_sizes_[bucket_of(item.num_uncached)];
  tokens_ += item.cost;
  front_tokens_ += item.cost;
  front_.emplace(order, std::move(item));
}

QueueItem FairQueue::take(const Place& place, TimePoint now) {
  QueueItem item;
  if (place.bucket == kFront) {
    item = std::move(front_.extract(place.order).mapped());
    front_tokens_ -= item.cost;
  } else {
    Tenant& tenant = tenants_.at(place.tenant);
    unrank(place.tenant, tenant);
    Level& level = tenant.levels.at(place.priority);
    Bucket& bucket = level.buckets[place.bucket];
    item = std::move(bucket.items.extract(place.order).mapped());
    bucket.tokens -= item.cost;
    tenant.tokens -= item.cost;
    if (--tenant.size == 0) tenant.credit.observe(/*waiting=*/false, now);
    if (--level.size == 0) tenant.levels.erase(place.priority);
    rank(place.tenant, tenant);
  }
  --bucket_sizes_[bucket_of(item.num_uncached)];
  tokens_ -= item.cost;
  places_.erase(item.id);
  return item;
}

bool FairQueue::remove(RequestId id, TimePoint now) {
  const auto it = places_.find(id);
  if (it == places_.end()) return false;
  take(Place(it->second), now);
  raise_floor();
  return true;
}

void FairQueue::charge(const Place& place, std::uint64_t cost, TimePoint now) {
  Tenant& tenant = tenants_.at(place.tenant);
  unrank(place.tenant, tenant);
  tenant.served += cost * kUnit / tenant.weight;
  ++tenant.num_running;
  ++num_running_;
  const auto level = tenant.levels.find(place.priority);
  if (level != tenant.levels.end()) {
    level->second.buckets[place.bucket].served += cost;
    level->second.last_turn = now;
  }
  rank(place.tenant, tenant);
  if (active_.empty()) floor_ = std::max(floor_, tenant.served);  // of the last to leave
  raise_floor();
}

void FairQueue::settle(const std::string& tenant_name, std::int64_t correction) {
  const auto it = tenant_numbers_.find(tenant_name);
  INVARIANT(it != tenant_numbers_.end()) << "tenant " << tenant_name << " has nothing running";
  Tenant& tenant = tenants_.at(it->second);
  INVARIANT_GE(tenant.num_running, 1U);
  unrank(it->second, tenant);
  const std::uint64_t size =
      static_cast<std::uint64_t>(std::abs(correction)) * kUnit / tenant.weight;
  if (correction < 0) {
    tenant.served -= std::min(tenant.served, size);
  } else {
    tenant.served += size;
  }
  --tenant.num_running;
  --num_running_;
  rank(it->second, tenant);
  raise_floor();
}

/// When the level's next turn is due: the earliest goes first.
TimePoint FairQueue::due(std::int32_t priority, const Level& level) const {
  TimePoint oldest = TimePoint::max();
  for (const Bucket& bucket : level.buckets) {
    if (!bucket.items.empty()) oldest = std::min(oldest, bucket.items.begin()->second.since);
  }
  return std::max(oldest, level.last_turn) + priority * options_.ageing;
}

/// The bucket whose head goes next; buckets in `tried` (bits) are passed over.
std::optional<std::size_t> FairQueue::next_bucket(const Level& level, std::uint64_t tried) {
  std::optional<std::size_t> best;
  const std::size_t num_starved = planted(PlantedBug::kStarveLongPrompts) ? 1 : 0;
  for (std::size_t i = 0; i + num_starved < level.buckets.size(); ++i) {
    if (level.buckets[i].items.empty() || (tried >> i & 1) != 0) continue;
    if (!best || level.buckets[i].served < level.buckets[*best].served) best = i;
  }
  return best;
}

std::optional<FairQueue::Place> FairQueue::offer_tenant(std::uint64_t number, const Offer& offer,
                                                        std::uint64_t& cost) const {
  const Tenant& tenant = tenants_.at(number);
  std::pair<TimePoint, std::int32_t> last = {TimePoint::min(), 0};
  for (int levels_left = kLevelsTried; levels_left > 0; --levels_left) {
    std::pair<TimePoint, std::int32_t> next = {TimePoint::max(), 0};
    const Level* level = nullptr;
    for (const auto& [priority, candidate] : tenant.levels) {
      const std::pair at{due(priority, candidate), priority};
      if (at <= last || at >= next) continue;
      next = at;
      level = &candidate;
    }
    if (level == nullptr) return std::nullopt;
    last = next;
    std::uint64_t tried = 0;
    while (const std::optional<std::size_t> bucket = next_bucket(*level, tried)) {
      const auto& [order, item] = *level->buckets[*bucket].items.begin();
      if (const std::optional<std::uint64_t> taken = offer(item)) {
        cost = *taken;
        return Place{.tenant = number, .priority = next.second, .bucket = *bucket, .order = order};
      }
      tried |= std::uint64_t{1} << *bucket;
    }
  }
  return std::nullopt;
}

QueueItem FairQueue::take_charged(const Place& place, std::uint64_t cost, TimePoint now) {
  QueueItem item = take(place, now);
  charge(place, cost, now);
  item.cost = cost;
  return item;
}

std::optional<QueueItem> FairQueue::pop_front(const Offer& offer, TimePoint now) {
  int left = kFrontTried;
  for (auto it = front_.begin(); it != front_.end() && left > 0; ++it, --left) {
    if (offer(it->second)) return take(Place{.bucket = kFront, .order = it->first}, now);
  }
  return std::nullopt;
}

std::optional<QueueItem> FairQueue::pop(const Offer& offer, TimePoint now) {
  if (std::optional<QueueItem> item = pop_front(offer, now)) return item;
  int tenants_left = kTenantsTried;
  for (auto it = active_.begin(); it != active_.end() && tenants_left > 0; ++it, --tenants_left) {
    std::uint64_t cost = 0;
    const std::optional<Place> place = offer_tenant(it->second, offer, cost);
    if (!place) continue;
    return take_charged(*place, cost, now);
  }
  return std::nullopt;
}

std::optional<QueueItem> FairQueue::pop_one(RequestId id, const Offer& offer, TimePoint now) {
  const Place place = places_.at(id);
  if (place.bucket == kFront) {
    if (!offer(front_.at(place.order))) return std::nullopt;
    return take(place, now);
  }
  const Level& level = tenants_.at(place.tenant).levels.at(place.priority);
  const auto cost = offer(level.buckets[place.bucket].items.at(place.order));
  if (!cost) return std::nullopt;
  return take_charged(place, *cost, now);
}

std::uint64_t FairQueue::tokens_ahead(const QueueItem& item) const {
  const Tenant* tenant = find_tenant(item.tenant);
  const std::uint64_t weight = weight_of(item.tenant);
  std::uint64_t own = 0;
  if (tenant != nullptr) {
    for (const auto& [priority, level] : tenant->levels) {
      if (priority > item.priority) break;
      const bool more_urgent = priority < item.priority;
      const std::uint64_t share = level.buckets[bucket_of(item.num_uncached)].tokens;
      for (const Bucket& bucket : level.buckets)
        own += more_urgent ? bucket.tokens : std::min(bucket.tokens, share);
    }
  }
  const bool is_active = tenant != nullptr && tenant->size > 0;
  const std::uint64_t all_weights = active_weight_ + (is_active ? 0 : weight);
  return std::min(tokens_, front_tokens_ + own * all_weights / weight);
}

void FairQueue::set_overload(const std::string& name, TimePoint now) {
  const auto it = tenant_numbers_.find(name);
  if (it != tenant_numbers_.end()) tenants_.at(it->second).credit.exhaust(now);
}

bool FairQueue::is_overload(const std::string& name, TimePoint now) const {
  const Tenant* tenant = find_tenant(name);
  return tenant != nullptr && tenant->credit.is_overload(now);
}

std::size_t FairQueue::tenant_size(const std::string& name) const {
  const Tenant* tenant = find_tenant(name);
  return tenant == nullptr ? 0 : tenant->size;
}

std::uint64_t FairQueue::tenant_tokens(const std::string& name) const {
  const Tenant* tenant = find_tenant(name);
  return tenant == nullptr ? 0 : tenant->tokens;
}

WaitReason FairQueue::waits_behind(RequestId id) const {
  const Place& place = places_.at(id);
  if (place.bucket == kFront) {
    return front_.begin()->first < place.order ? WaitReason::kPreempted : WaitReason::kNothing;
  }
  if (!front_.empty()) return WaitReason::kPreempted;
  const Tenant& tenant = tenants_.at(place.tenant);
  if (active_.begin()->second != place.tenant) return WaitReason::kFairness;
  const Level& level = tenant.levels.at(place.priority);
  const std::pair turn{due(place.priority, level), place.priority};
  for (const auto& [priority, other] : tenant.levels) {
    if (std::pair{due(priority, other), priority} < turn) return WaitReason::kPriority;
  }
  if (level.buckets[place.bucket].items.begin()->first < place.order) return WaitReason::kOrder;
  return next_bucket(level, /*tried=*/0) == place.bucket ? WaitReason::kNothing
                                                         : WaitReason::kBucket;
}

std::vector<RequestId> FairQueue::ids() const {
  std::map<std::uint64_t, RequestId> by_order;
  for (const auto& [order, item] : front_)
    by_order.emplace(order, item.id);
  for (const auto& [number, tenant] : tenants_) {
    for (const auto& [priority, level] : tenant.levels) {
      for (const Bucket& bucket : level.buckets) {
        for (const auto& [order, item] : bucket.items)
          by_order.emplace(order, item.id);
      }
    }
  }
  std::vector<RequestId> ids;
  for (const auto& [order, id] : by_order)
    ids.push_back(id);
  return ids;
}

void FairQueue::audit() const {
  std::size_t size = front_.size();
  std::uint64_t front_tokens = 0;
  for (const auto& [order, item] : front_)
    front_tokens += item.cost;
  std::uint64_t tokens = front_tokens;
  std::uint64_t weight = 0;
  for (const auto& [number, tenant] : tenants_) {
    std::size_t tenant_size = 0;
    std::uint64_t tenant_tokens = 0;
    for (const auto& [priority, level] : tenant.levels) {
      std::size_t level_size = 0;
      for (const Bucket& bucket : level.buckets) {
        std::uint64_t bucket_tokens = 0;
        for (const auto& [order, item] : bucket.items) {
          bucket_tokens += item.cost;
          INVARIANT(places_.contains(item.id)) << "request " << item.id << " has no place";
        }
        INVARIANT_EQ(bucket_tokens, bucket.tokens);
        level_size += bucket.items.size();
        tenant_tokens += bucket_tokens;
      }
      INVARIANT_EQ(level_size, level.size);
      INVARIANT(level_size > 0) << "empty level " << priority << " of tenant " << tenant.name;
      tenant_size += level_size;
    }
    INVARIANT_EQ(tenant_size, tenant.size);
    INVARIANT_EQ(tenant_tokens, tenant.tokens);
    const bool idle = tenant.size == 0 && tenant.num_running == 0;
    INVARIANT_EQ(active_.contains({tenant.served, number}), tenant.size > 0);
    INVARIANT_EQ(idle_.contains({tenant.served, number}), idle);
    if (tenant.size > 0) weight += tenant.weight;
    size += tenant_size;
    tokens += tenant_tokens;
  }
  std::uint64_t in_buckets = 0;
  for (const std::uint64_t count : bucket_sizes_)
    in_buckets += count;
  INVARIANT_EQ(size, places_.size());
  INVARIANT_EQ(in_buckets, places_.size());
  INVARIANT_EQ(front_tokens, front_tokens_);
  INVARIANT_EQ(tokens, tokens_);
  INVARIANT_EQ(weight, active_weight_);
}

}  // namespace brigade::router
