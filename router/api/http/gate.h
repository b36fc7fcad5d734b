// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/time.h"
#include "common/config/api_keys.h"
#include "router/api/http/error.h"
#include "router/api/http/rate_limit.h"
#include "router/api/http/request_parser.h"

namespace brigade::router {

/// What a key must allow. kOpen: nothing, it may be asked without one.
enum class Scope : std::uint8_t { kOpen, kInference, kAdmin, kMetrics };

/// Why a request was not let in, for the metrics.
enum class Refusal : std::uint8_t {
  kNoKey,
  kWrongKey,
  kScope,
  kRequestsPerMinute,
  kTokensPerMinute,
  kConcurrency,
};
inline constexpr std::array<std::string_view, 6> kRefusalNames = {
    "no_key", "wrong_key", "scope", "requests_per_minute", "tokens_per_minute", "concurrency",
};

/// A tenant's requests in work.
struct Tenant {
  std::string name;
  std::uint32_t max_concurrent = 0;  ///< 0: no limit
  std::uint32_t running = 0;
};

/// One key and what it has used up.
class Account final {
 public:
  Account(config::ApiKey key, std::shared_ptr<Tenant> tenant)
      : key_(std::move(key)),
        tenant_(std::move(tenant)),
        requests_(key_.requests_per_minute),
        tokens_(key_.tokens_per_minute) {}

  [[nodiscard]] const config::ApiKey& key() const { return key_; }
  [[nodiscard]] const std::shared_ptr<Tenant>& tenant() const { return tenant_; }
  [[nodiscard]] RateLimit& requests() { return requests_; }
  [[nodiscard]] RateLimit& tokens() { return tokens_; }
  /// The same key in a newer file: what it has used up stays so where its limits are the same.
  void renew(config::ApiKey key, std::shared_ptr<Tenant> tenant);

 private:
  config::ApiKey key_;
  std::shared_ptr<Tenant> tenant_;
  RateLimit requests_;
  RateLimit tokens_;
};

/// A request in work, counted with its tenant until it is destroyed.
class Ticket final {
 public:
  explicit Ticket(std::shared_ptr<Tenant> tenant) : tenant_(std::move(tenant)) {
    ++tenant_->running;
  }
  ~Ticket() {
    if (tenant_ != nullptr) --tenant_->running;
  }
  Ticket(Ticket&&) noexcept = default;
  Ticket& operator=(Ticket&&) = delete;

 private:
  std::shared_ptr<Tenant> tenant_;
};

/// Who may ask for what, and how much. Without keys everyone may. I/O thread only.
class Gate final {
 public:
  using Count = std::uint64_t;

  /// Takes the place of all keys; requests in work go on.
  void set_keys(const config::ApiKeyFile& file);
  [[nodiscard]] bool has_keys() const { return has_keys_; }

  /// 401 or 403; else `account` is the key's (null when there are no keys, or none is needed).
  [[nodiscard]] std::optional<ApiError> identify(const RequestHead& head, Scope scope,
                                                 std::shared_ptr<Account>& account);
  /// 429 with the time after which a retry can help; else `ticket` is set.
  [[nodiscard]] std::optional<ApiError> admit(Account& account, TimePoint now,
                                              std::optional<Ticket>& ticket);

  /// By Refusal.
  [[nodiscard]] const std::array<Count, kRefusalNames.size()>& refusals() const {
    return refusals_;
  }

 private:
  ApiError refuse(Refusal refusal, ApiError error);

  bool has_keys_ = false;
  std::map<std::string, std::shared_ptr<Account>, std::less<>> accounts_;  ///< by key id
  std::map<std::string, std::shared_ptr<Tenant>, std::less<>> tenants_;
  std::array<Count, kRefusalNames.size()> refusals_{};
};

}  // namespace brigade::router
