// SPDX-License-Identifier: Apache-2.0
#include "router/core/fair_queue.h"

#include <algorithm>

#include "common/base/check.h"

namespace brigade::router {

FairQueue::FairQueue(std::vector<std::uint32_t> bucket_edges, Duration ageing)
    : bucket_edges_(std::move(bucket_edges)),
      ageing_(ageing),
      bucket_sizes_(bucket_edges_.size() + 1, 0) {
  INVARIANT(std::is_sorted(bucket_edges_.begin(), bucket_edges_.end())) << "bucket edges";
  INVARIANT_LT(bucket_edges_.size(), 63U);
}

std::size_t FairQueue::bucket_of(std::uint64_t num_prompt) const {
  const auto it = std::lower_bound(bucket_edges_.begin(), bucket_edges_.end(), num_prompt);
  return static_cast<std::size_t>(it - bucket_edges_.begin());
}

std::uint64_t FairQueue::find_or_add_tenant(const std::string& name) {
  const auto [it, is_new] = tenant_numbers_.emplace(name, next_tenant_);
  if (!is_new) return it->second;
  Tenant& tenant = tenants_[next_tenant_];
  tenant.name = name;
  tenant.served = level_;
  tenant.buckets.resize(bucket_sizes_.size());
  idle_.emplace(tenant.served, next_tenant_);
  return next_tenant_++;
}

void FairQueue::push(QueueItem item) {
  const std::uint64_t number = find_or_add_tenant(item.tenant);
  Tenant& tenant = tenants_.at(number);
  if (tenant.size == 0) {
    idle_.erase({tenant.served, number});
    tenant.served = std::max(tenant.served, level_);
    active_.emplace(tenant.served, number);
  }
  const std::size_t index = bucket_of(item.num_prompt);
  Bucket& bucket = tenant.buckets[index];
  if (bucket.items.empty()) {
    // As for tenants: a bucket that was empty starts at the level of the busy ones.
    std::optional<std::uint64_t> level;
    for (const Bucket& other : tenant.buckets) {
      if (!other.items.empty()) level = std::min(level.value_or(other.served), other.served);
    }
    bucket.served = std::max(bucket.served, level.value_or(0));
  }
  const bool is_new = places_.emplace(item.id, Place{number, index, item.order}).second;
  INVARIANT(is_new) << "request " << item.id << " queued twice";
  ++tenant.size;
  ++bucket_sizes_[index];
  tokens_ += item.cost;
  bucket.items.emplace(item.order, std::move(item));
}

void FairQueue::push_front(QueueItem item) {
  const std::uint64_t order = item.order;
  const bool is_new = places_.emplace(item.id, Place{0, kFront, order}).second;
  INVARIANT(is_new) << "request " << item.id << " queued twice";
  ++bucket_sizes_[bucket_of(item.num_prompt)];
  tokens_ += item.cost;
  front_.emplace(order, std::move(item));
}

QueueItem FairQueue::take(const Place& place) {
  QueueItem item;
  if (place.bucket == kFront) {
    item = std::move(front_.extract(place.order).mapped());
  } else {
    Tenant& tenant = tenants_.at(place.tenant);
    item = std::move(tenant.buckets[place.bucket].items.extract(place.order).mapped());
    if (--tenant.size == 0) {
      active_.erase({tenant.served, place.tenant});
      idle_.emplace(tenant.served, place.tenant);
    }
  }
  --bucket_sizes_[bucket_of(item.num_prompt)];
  tokens_ -= item.cost;
  places_.erase(item.id);
  return item;
}

bool FairQueue::remove(RequestId id) {
  const auto it = places_.find(id);
  if (it == places_.end()) return false;
  take(Place(it->second));
  return true;
}

std::optional<std::size_t> FairQueue::next_bucket(const Tenant& tenant, std::uint64_t tried) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < tenant.buckets.size(); ++i) {
    if (tenant.buckets[i].items.empty() || (tried >> i & 1) != 0) continue;
    if (!best || tenant.buckets[i].served < tenant.buckets[*best].served) best = i;
  }
  return best;
}

std::size_t FairQueue::oldest_bucket(const Tenant& tenant) {
  std::optional<std::size_t> oldest;
  for (std::size_t i = 0; i < tenant.buckets.size(); ++i) {
    const auto& items = tenant.buckets[i].items;
    if (items.empty()) continue;
    if (!oldest || items.begin()->first < tenant.buckets[*oldest].items.begin()->first) oldest = i;
  }
  INVARIANT(oldest.has_value()) << "tenant " << tenant.name << " is active but has no request";
  return *oldest;
}

void FairQueue::charge(Tenant& tenant, std::uint64_t number, std::size_t bucket,
                       std::uint64_t cost) {
  level_ = std::max(level_, tenant.served);
  tenant.buckets[bucket].served += cost;
  auto& set = tenant.size == 0 ? idle_ : active_;
  set.erase({tenant.served, number});
  tenant.served += cost;
  set.emplace(tenant.served, number);
  forget_idle_tenants();
}

void FairQueue::forget_idle_tenants() {
  // Whoever comes back starts at `level_` anyway, so a tenant at or below it need not be
  // remembered.
  while (!idle_.empty() && idle_.begin()->first <= level_) {
    const std::uint64_t number = idle_.begin()->second;
    tenant_numbers_.erase(tenants_.at(number).name);
    tenants_.erase(number);
    idle_.erase(idle_.begin());
  }
}

std::optional<QueueItem> FairQueue::pop(TimePoint now, const Fits& fits) {
  if (!front_.empty()) {
    const auto& [order, item] = *front_.begin();
    if (!fits(item)) return std::nullopt;
    return take(Place{0, kFront, order});
  }
  int tenants_left = kTenantsTried;
  for (auto it = active_.begin(); it != active_.end() && tenants_left > 0; ++it, --tenants_left) {
    const std::uint64_t number = it->second;
    Tenant& tenant = tenants_.at(number);
    const std::size_t oldest = oldest_bucket(tenant);
    const QueueItem& oldest_item = tenant.buckets[oldest].items.begin()->second;
    const bool aged = oldest_item.since + ageing_ <= now;
    std::uint64_t tried = aged ? ~(std::uint64_t{1} << oldest) : 0;
    while (const std::optional<std::size_t> bucket = next_bucket(tenant, tried)) {
      const auto& [order, item] = *tenant.buckets[*bucket].items.begin();
      if (fits(item)) {
        QueueItem taken = take(Place{number, *bucket, order});
        charge(tenant, number, *bucket, taken.cost);
        return taken;
      }
      tried |= std::uint64_t{1} << *bucket;
    }
    if (aged) return std::nullopt;
  }
  return std::nullopt;
}

std::size_t FairQueue::tenant_size(const std::string& tenant) const {
  const auto it = tenant_numbers_.find(tenant);
  return it == tenant_numbers_.end() ? 0 : tenants_.at(it->second).size;
}

std::vector<RequestId> FairQueue::ids() const {
  std::map<std::uint64_t, RequestId> by_order;
  for (const auto& [order, item] : front_)
    by_order.emplace(order, item.id);
  for (const auto& [number, tenant] : tenants_) {
    for (const Bucket& bucket : tenant.buckets) {
      for (const auto& [order, item] : bucket.items)
        by_order.emplace(order, item.id);
    }
  }
  std::vector<RequestId> ids;
  for (const auto& [order, id] : by_order)
    ids.push_back(id);
  return ids;
}

void FairQueue::audit() const {
  std::size_t size = front_.size();
  std::uint64_t tokens = 0;
  for (const auto& [order, item] : front_)
    tokens += item.cost;
  for (const auto& [number, tenant] : tenants_) {
    std::size_t tenant_size = 0;
    for (const Bucket& bucket : tenant.buckets) {
      tenant_size += bucket.items.size();
      for (const auto& [order, item] : bucket.items) {
        tokens += item.cost;
        INVARIANT(places_.contains(item.id)) << "request " << item.id << " has no place";
      }
    }
    INVARIANT_EQ(tenant_size, tenant.size);
    INVARIANT_EQ(active_.contains({tenant.served, number}), tenant.size > 0);
    INVARIANT_EQ(idle_.contains({tenant.served, number}), tenant.size == 0);
    size += tenant_size;
  }
  std::uint64_t in_buckets = 0;
  for (const std::uint64_t count : bucket_sizes_)
    in_buckets += count;
  INVARIANT_EQ(size, places_.size());
  INVARIANT_EQ(in_buckets, places_.size());
  INVARIANT_EQ(tokens, tokens_);
  INVARIANT_EQ(active_.size() + idle_.size(), tenants_.size());
}

}  // namespace brigade::router
