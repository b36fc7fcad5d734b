// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "router/core/types.h"

namespace brigade::router {

/// A waiting request, as the queue sees it.
struct QueueItem {
  RequestId id = 0;
  std::uint64_t order = 0;  ///< of acceptance
  std::string tenant;
  std::uint64_t num_prompt = 0;  ///< tokens to prefill: chooses the bucket
  std::uint64_t cost = 0;        ///< tokens charged to its tenant
  TimePoint since;               ///< of acceptance
};

/// The requests that wait for one model. Each tenant has a virtual counter of tokens served, and
/// the one with the lowest goes next (VTC, OSDI'24: the service of two backlogged tenants differs
/// by at most about two requests); one that was idle starts at the level of the others, so that
/// nobody saves up. Within a tenant, length buckets share by tokens in the same way, so that short
/// requests do not stand behind long prefills, until a request is older than `ageing`: then the
/// oldest goes first. Operations are O(log n) in requests and tenants.
class FairQueue final {
 public:
  FairQueue(std::vector<std::uint32_t> bucket_edges, Duration ageing);

  void push(QueueItem item);
  /// For what was placed before and lost its place: goes before all others, oldest first, and is
  /// not charged again.
  void push_front(QueueItem item);
  /// False when it is not here.
  bool remove(RequestId id);

  using Fits = std::function<bool(const QueueItem&)>;
  /// Takes out the next request for which `fits` is true. Younger or other requests may pass one
  /// that does not fit yet, until that one is aged (or stood in front): then all wait for it, so
  /// that large requests do not starve.
  std::optional<QueueItem> pop(TimePoint now, const Fits& fits);

  [[nodiscard]] std::size_t size() const { return places_.size(); }
  [[nodiscard]] bool empty() const { return places_.empty(); }
  [[nodiscard]] std::uint64_t tokens() const { return tokens_; }
  [[nodiscard]] std::size_t tenant_size(const std::string& tenant) const;
  [[nodiscard]] std::uint64_t bucket_size(std::size_t bucket) const {
    return bucket_sizes_[bucket];
  }
  [[nodiscard]] bool contains(RequestId id) const { return places_.contains(id); }
  /// Ids in order of acceptance (linear: for ends of a whole model).
  [[nodiscard]] std::vector<RequestId> ids() const;

  void audit() const;

 private:
  static constexpr std::size_t kFront = static_cast<std::size_t>(-1);
  /// How many tenants' heads are tried when the first in line does not fit now.
  static constexpr int kTenantsTried = 4;

  struct Bucket {
    std::map<std::uint64_t, QueueItem> items;  ///< by order
    std::uint64_t served = 0;                  ///< virtual counter, in tokens
  };
  struct Tenant {
    std::string name;
    std::uint64_t served = 0;  ///< virtual counter, in tokens
    std::size_t size = 0;
    std::vector<Bucket> buckets;
  };
  struct Place {
    std::uint64_t tenant = 0;
    std::size_t bucket = 0;  ///< or kFront
    std::uint64_t order = 0;
  };

  std::uint64_t find_or_add_tenant(const std::string& name);
  [[nodiscard]] std::size_t bucket_of(std::uint64_t num_prompt) const;
  QueueItem take(const Place& place);
  void charge(Tenant& tenant, std::uint64_t number, std::size_t bucket, std::uint64_t cost);
  void forget_idle_tenants();
  /// The bucket whose head goes next, without regard to age; buckets in `tried` (bits) are passed
  /// over.
  [[nodiscard]] static std::optional<std::size_t> next_bucket(const Tenant& tenant,
                                                              std::uint64_t tried);
  [[nodiscard]] static std::size_t oldest_bucket(const Tenant& tenant);

  std::vector<std::uint32_t> bucket_edges_;
  Duration ageing_;
  std::map<std::uint64_t, QueueItem> front_;                       ///< by order
  std::map<std::uint64_t, Tenant> tenants_;                        ///< by number
  std::unordered_map<std::string, std::uint64_t> tenant_numbers_;  ///< looked up, never iterated
  std::set<std::pair<std::uint64_t, std::uint64_t>> active_;       ///< (served, number), not empty
  std::set<std::pair<std::uint64_t, std::uint64_t>> idle_;         ///< (served, number), empty
  std::unordered_map<RequestId, Place> places_;                    ///< looked up, never iterated
  std::vector<std::uint64_t> bucket_sizes_;
  std::uint64_t tokens_ = 0;
  std::uint64_t level_ = 0;  ///< virtual time: the counter of the last tenant served
  std::uint64_t next_tenant_ = 0;
};

}  // namespace brigade::router
