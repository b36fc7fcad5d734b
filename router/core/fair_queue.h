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

#include "router/core/burst_credit.h"
#include "router/core/types.h"

namespace brigade::router {

/// A waiting request, as the queue sees it.
struct QueueItem {
  RequestId id = 0;
  std::uint64_t order = 0;  ///< of acceptance
  std::string tenant;
  std::int32_t priority = 0;       ///< lower goes first
  std::uint64_t num_uncached = 0;  ///< tokens to prefill: chooses the bucket
  std::uint64_t cost = 0;          ///< tokens that its tenant is charged: those and the output's
  TimePoint since;                 ///< of acceptance
};

/// The requests that wait for one model. Who goes next is found in three layers:
///
///     tenant   the one that was served least, in tokens over its weight
///     level    of its requests' priorities: the most urgent; but one that is n steps of priority
///              behind it has a turn when it has had none for n x `ageing`
///     bucket   of uncached prompt length: the one that was served least, in tokens
///     request  the oldest
///
/// Tenants: VTC (OSDI'24). Each has a counter that grows by charge / weight when one of its
/// requests is taken, and is corrected by settle() when the real length of the output is known. A
/// tenant that had nothing waiting starts at the lowest counter of those that have: nobody saves
/// up. So while two tenants have requests waiting (that fit), their counters differ by at most
///
///     C = the largest charge / weight, and what settle() has changed since,
///
/// and what they are served over any such time by at most 2 C. Priorities are a tenant's own
/// matter: no tenant gains on another by them.
///
/// Buckets: short requests do not stand behind long prefills, nor long ones behind a flood of short
/// ones: of B buckets with requests each gets 1 / B of its level's tokens, so that the head of one
/// waits for B times its own cost, about.
///
/// One that does not fit anywhere yet is passed over by those that do; who asks must see to it that
/// it fits some day. Operations take O(log n) in requests and tenants; the levels of one tenant
/// (at most 201) and the buckets are looked at one by one.
class FairQueue final {
 public:
  struct Options {
    std::vector<std::uint32_t> bucket_edges;            ///< tokens, ascending, at most 62
    Duration ageing = Duration::zero();                 ///< of one step of priority
    std::map<std::string, std::uint32_t> weights = {};  ///< of tenants; others have 1
    Duration calm = Duration::zero();                   ///< set_overload()
  };
  explicit FairQueue(Options options);

  void push(QueueItem item);
  /// For what was taken before and lost its place: goes before all others, oldest first, and is not
  /// charged again.
  void push_front(QueueItem item);
  /// False when it is not here.
  bool remove(RequestId id, TimePoint now);

  /// What to charge for the request if it is taken now; nothing when it does not fit anywhere.
  using Offer = std::function<std::optional<std::uint64_t>(const QueueItem&)>;
  /// Takes out the next request that `offer` takes, with what was charged as its cost.
  std::optional<QueueItem> pop(const Offer& offer, TimePoint now);
  /// The same of this one alone, whoever's turn it is: a place was kept for it.
  std::optional<QueueItem> pop_one(RequestId id, const Offer& offer, TimePoint now);
  /// A request that was taken has ended: its charge should have been so many tokens more. Once for
  /// each.
  void settle(const std::string& tenant, std::int64_t correction);

  /// Tokens that are taken before a new request like `item`, if all are served by their shares: of
  /// its own tenant those of more urgent levels and, of each bucket of its level, as many as its
  /// own bucket has; for each of them what the others' weights give the others, of what they have.
  [[nodiscard]] std::uint64_t tokens_ahead(const QueueItem& item) const;

  /// A request of the tenant has been refused because it would have waited too long: the tenant
  /// sends more than its share, until its queue has been empty for long enough (BurstCredit). One
  /// that sends less never gets there, whatever others do.
  void set_overload(const std::string& tenant, TimePoint now);
  [[nodiscard]] bool is_overload(const std::string& tenant, TimePoint now) const;

  [[nodiscard]] std::size_t size() const { return places_.size(); }
  [[nodiscard]] bool empty() const { return places_.empty(); }
  [[nodiscard]] std::uint64_t tokens() const { return tokens_; }
  [[nodiscard]] std::size_t tenant_size(const std::string& tenant) const;
  [[nodiscard]] std::uint64_t tenant_tokens(const std::string& tenant) const;
  [[nodiscard]] std::uint64_t bucket_size(std::size_t bucket) const {
    return bucket_sizes_[bucket];
  }
  /// Requests that were taken and not settled.
  [[nodiscard]] std::uint64_t num_running() const { return num_running_; }
  /// Tenants that are remembered: those with requests here or running, and such as were served more
  /// than others lately.
  [[nodiscard]] std::size_t num_tenants() const { return tenants_.size(); }
  [[nodiscard]] bool contains(RequestId id) const { return places_.contains(id); }
  /// Who of those that wait goes before it; kNothing when it would be tried next.
  [[nodiscard]] WaitReason waits_behind(RequestId id) const;
  /// Ids in order of acceptance (linear: for ends of a whole model).
  [[nodiscard]] std::vector<RequestId> ids() const;

  void audit() const;

 private:
  static constexpr std::size_t kFront = static_cast<std::size_t>(-1);
  // How many heads are offered when those before do not fit.
  static constexpr int kFrontTried = 8;
  static constexpr int kTenantsTried = 4;
  static constexpr int kLevelsTried = 4;

  struct Bucket {
    std::map<std::uint64_t, QueueItem> items;  ///< by order
    std::uint64_t served = 0;                  ///< virtual counter, in tokens
    std::uint64_t tokens = 0;
  };
  struct Level {
    std::vector<Bucket> buckets;
    std::size_t size = 0;
    TimePoint last_turn = TimePoint::min();
  };
  struct Tenant {
    std::string name;
    std::uint32_t weight = 1;
    std::uint64_t served = 0;  ///< virtual counter, in tokens x kUnit / weight
    std::size_t size = 0;
    std::uint64_t tokens = 0;
    std::uint64_t num_running = 0;  ///< taken and not settled
    BurstCredit credit{Duration::zero()};
    std::map<std::int32_t, Level> levels;  ///< by priority, none empty
  };
  struct Place {
    std::uint64_t tenant = 0;
    std::int32_t priority = 0;
    std::size_t bucket = 0;  ///< or kFront
    std::uint64_t order = 0;
  };
  using Ranking = std::set<std::pair<std::uint64_t, std::uint64_t>>;

  [[nodiscard]] std::size_t bucket_of(std::uint64_t num_uncached) const;
  [[nodiscard]] const Tenant* find_tenant(const std::string& name) const;
  [[nodiscard]] std::uint32_t weight_of(const std::string& name) const;
  std::uint64_t find_or_add_tenant(const std::string& name);
  void unrank(std::uint64_t number, const Tenant& tenant);
  void rank(std::uint64_t number, const Tenant& tenant);
  void raise_floor();
  QueueItem take(const Place& place, TimePoint now);
  void charge(const Place& place, std::uint64_t cost, TimePoint now);
  std::optional<QueueItem> pop_front(const Offer& offer, TimePoint now);
  QueueItem take_charged(const Place& place, std::uint64_t cost, TimePoint now);
  std::optional<Place> offer_tenant(std::uint64_t number, const Offer& offer,
                                    std::uint64_t& cost) const;
  [[nodiscard]] TimePoint due(std::int32_t priority, const Level& level) const;
  [[nodiscard]] static std::optional<std::size_t> next_bucket(const Level& level,
                                                              std::uint64_t tried);

  Options options_;
  std::map<std::uint64_t, QueueItem> front_;  ///< by order
  std::uint64_t front_tokens_ = 0;
  std::map<std::uint64_t, Tenant> tenants_;                        ///< by number
  std::unordered_map<std::string, std::uint64_t> tenant_numbers_;  ///< looked up, never iterated
  Ranking active_;                               ///< (served, number) of those with requests here
  Ranking idle_;                                 ///< of those without any here or running
  std::uint64_t active_weight_ = 0;              ///< of those in active_
  std::unordered_map<RequestId, Place> places_;  ///< looked up, never iterated
  std::vector<std::uint64_t> bucket_sizes_;
  std::uint64_t tokens_ = 0;
  std::uint64_t num_running_ = 0;
  std::uint64_t floor_ = 0;  ///< virtual time: where a tenant starts that had nothing waiting
  std::uint64_t next_tenant_ = 0;
};

}  // namespace brigade::router
