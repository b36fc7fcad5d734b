// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "router/core/fair_queue.h"

namespace brigade::router::testing {

/// FairQueue's rules over one plain list, each looked up anew: slow, forgets no tenant, and offers
/// every head there is.
class NaiveQueue final {
 public:
  explicit NaiveQueue(FairQueue::Options options) : options_(std::move(options)) {}

  void push(const QueueItem& item) {
    const auto [it, is_new] = tenants_.try_emplace(item.tenant, floor_);
    if (!waits(item.tenant)) it->second = std::max(it->second, floor_);
    Level& level = levels_[{item.tenant, item.priority}];
    const auto same_level = [&](const QueueItem& other) {
      return other.tenant == item.tenant && other.priority == item.priority;
    };
    if (std::none_of(items_.begin(), items_.end(), same_level)) level = {};
    const auto same_bucket = [&](const QueueItem& other) {
      return same_level(other) && bucket_of(other) == bucket_of(item);
    };
    if (std::none_of(items_.begin(), items_.end(), same_bucket)) {
      std::optional<std::uint64_t> others;
      for (const QueueItem& other : items_) {
        if (!same_level(other)) continue;
        const std::uint64_t served = level.served[bucket_of(other)];
        others = std::min(others.value_or(served), served);
      }
      std::uint64_t& own = level.served[bucket_of(item)];
      own = std::max(own, others.value_or(0));
    }
    items_.push_back(item);
    raise_floor();
  }

  void push_front(const QueueItem& item) { front_.push_back(item); }

  bool remove(RequestId id) {
    const auto is_it = [id](const QueueItem& item) { return item.id == id; };
    const bool was_here = std::erase_if(items_, is_it) + std::erase_if(front_, is_it) > 0;
    raise_floor();
    return was_here;
  }
  /// Of one that stands in front; else empty.
  [[nodiscard]] std::string front_tenant(RequestId id) const {
    for (const QueueItem& item : front_) {
      if (item.id == id) return item.tenant;
    }
    return "";
  }

  /// Of tenants that are level any may go first: `tie` does, if it is one of them.
  std::optional<QueueItem> pop(const FairQueue::Offer& offer, TimePoint now,
                               const std::string& tie) {
    std::sort(front_.begin(), front_.end(), older);
    for (std::size_t i = 0; i < std::min<std::size_t>(front_.size(), 8); ++i) {
      const QueueItem item = front_[i];
      if (!offer(item)) continue;
      remove(item.id);
      running_.push_back(item);
      return item;
    }
    // Every order there is, by the rules; the first that fits.
    std::vector<QueueItem> heads = items_;
    std::sort(heads.begin(), heads.end(),
              [&](const QueueItem& a, const QueueItem& b) { return rank(a, tie) < rank(b, tie); });
    std::set<std::tuple<std::string, std::int32_t, std::size_t>> buckets;
    for (const QueueItem& item : heads) {
      if (!buckets.emplace(item.tenant, item.priority, bucket_of(item)).second) continue;
      const std::optional<std::uint64_t> cost = offer(item);
      if (!cost) continue;
      charge(item, *cost, now);
      return item;
    }
    return std::nullopt;
  }

  void settle(const std::string& tenant, std::int64_t correction) {
    Counter& served = tenants_.at(tenant);
    const std::uint64_t size = std::abs(correction) * 1024 / weight_of(tenant);
    if (correction < 0) {
      served -= std::min(served, size);
    } else {
      served += size;
    }
    raise_floor();
  }

  /// One of those that were taken and have not been given back or settled.
  std::optional<QueueItem> take_running(std::size_t index) {
    if (running_.empty()) return std::nullopt;
    const auto it = running_.begin() + static_cast<std::ptrdiff_t>(index % running_.size());
    QueueItem item = *it;
    running_.erase(it);
    return item;
  }

  [[nodiscard]] std::uint64_t num_running() const { return running_.size() + front_.size(); }
  [[nodiscard]] std::vector<RequestId> ids() const {
    std::vector<RequestId> ids;
    for (const QueueItem& item : items_)
      ids.push_back(item.id);
    for (const QueueItem& item : front_)
      ids.push_back(item.id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

 private:
  using Counter = std::uint64_t;
  struct Level {
    std::map<std::size_t, std::uint64_t> served;  ///< by bucket
    TimePoint last_turn = TimePoint::min();
  };

  static bool older(const QueueItem& a, const QueueItem& b) { return a.order < b.order; }
  [[nodiscard]] std::size_t bucket_of(const QueueItem& item) const {
    return static_cast<std::size_t>(
        std::count_if(options_.bucket_edges.begin(), options_.bucket_edges.end(),
                      [&item](std::uint32_t edge) { return item.num_uncached > edge; }));
  }
  [[nodiscard]] std::uint64_t weight_of(const std::string& tenant) const {
    const auto it = options_.weights.find(tenant);
    return it == options_.weights.end() ? 1 : it->second;
  }
  [[nodiscard]] bool waits(const std::string& tenant) const {
    return std::any_of(items_.begin(), items_.end(),
                       [&tenant](const QueueItem& item) { return item.tenant == tenant; });
  }
  void raise_floor() {
    std::optional<Counter> lowest;
    for (const auto& [name, served] : tenants_) {
      if (waits(name)) lowest = std::min(lowest.value_or(served), served);
    }
    floor_ = std::max(floor_, lowest.value_or(0));
  }
  [[nodiscard]] TimePoint due(const QueueItem& item) const {
    TimePoint oldest = TimePoint::max();
    for (const QueueItem& other : items_) {
      if (other.tenant == item.tenant && other.priority == item.priority) {
        oldest = std::min(oldest, other.since);
      }
    }
    const Level& level = levels_.at({item.tenant, item.priority});
    return std::max(oldest, level.last_turn) + item.priority * options_.ageing;
  }
  using Rank = std::tuple<Counter, bool, std::string, TimePoint, std::int32_t, std::uint64_t,
                          std::size_t, std::uint64_t>;
  [[nodiscard]] Rank rank(const QueueItem& item, const std::string& tie) const {
    const Level& level = levels_.at({item.tenant, item.priority});
    const auto served = level.served.find(bucket_of(item));
    return {tenants_.at(item.tenant),
            item.tenant != tie,
            item.tenant,
            due(item),
            item.priority,
            served == level.served.end() ? 0 : served->second,
            bucket_of(item),
            item.order};
  }
  void charge(const QueueItem& item, std::uint64_t cost, TimePoint now) {
    std::erase_if(items_, [&item](const QueueItem& other) { return other.id == item.id; });
    running_.push_back(item);
    Counter& served = tenants_.at(item.tenant);
    served += cost * 1024 / weight_of(item.tenant);
    Level& level = levels_.at({item.tenant, item.priority});
    level.served[bucket_of(item)] += cost;
    level.last_turn = now;
    if (items_.empty()) floor_ = std::max(floor_, served);
    raise_floor();
  }

  FairQueue::Options options_;
  std::vector<QueueItem> items_;
  std::vector<QueueItem> front_;
  std::vector<QueueItem> running_;
  std::map<std::string, Counter> tenants_;
  std::map<std::pair<std::string, std::int32_t>, Level> levels_;
  Counter floor_ = 0;
};

}  // namespace brigade::router::testing
