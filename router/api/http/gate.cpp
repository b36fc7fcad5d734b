// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/gate.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

constexpr std::string_view kScheme = "bearer ";

/// The token of `Authorization: Bearer TOKEN`; empty when there is none.
std::string_view bearer_token(const RequestHead& head) {
  const std::string* field = head.find("authorization");
  if (field == nullptr || field->size() < kScheme.size()) return "";
  const std::string_view text = *field;
  const bool is_bearer =
      std::equal(kScheme.begin(), kScheme.end(), text.begin(), [](char wanted, unsigned char sent) {
        return wanted == static_cast<char>(std::tolower(sent));
      });
  if (!is_bearer) return "";
  const std::size_t start = text.find_first_not_of(' ', kScheme.size());
  return start == std::string_view::npos ? "" : text.substr(start);
}

bool allows(const config::ApiScopes& scopes, Scope scope) {
  switch (scope) {
    case Scope::kOpen:
      return true;
    case Scope::kInference:
      return scopes.inference;
    case Scope::kAdmin:
      return scopes.admin;
    case Scope::kMetrics:
      return scopes.metrics;
  }
  return false;
}

std::string_view name_of(Scope scope) {
  switch (scope) {
    case Scope::kOpen:
      return "open";
    case Scope::kInference:
      return "inference";
    case Scope::kAdmin:
      return "admin";
    case Scope::kMetrics:
      return "metrics";
  }
  return "";
}

std::uint32_t whole_seconds(Duration wait) {
  return static_cast<std::uint32_t>(
      std::max(1.0, std::ceil(std::chrono::duration<double>(wait).count())));
}

ApiError too_many(std::string message, Duration wait) {
  return {.status = 429,
          .message = std::move(message),
          .code = "rate_limit_exceeded",
          .retry_after_s = whole_seconds(wait)};
}

}  // namespace

void Account::renew(config::ApiKey key, std::shared_ptr<Tenant> tenant) {
  if (key.requests_per_minute != key_.requests_per_minute) {
    requests_ = RateLimit(key.requests_per_minute);
  }
  if (key.tokens_per_minute != key_.tokens_per_minute) tokens_ = RateLimit(key.tokens_per_minute);
  key_ = std::move(key);
  tenant_ = std::move(tenant);
}

void Gate::set_keys(const config::ApiKeyFile& file) {
  has_keys_ = true;
  for (auto& [name, tenant] : tenants_)
    tenant->max_concurrent = 0;
  const auto tenant_of = [this](const std::string& name) {
    std::shared_ptr<Tenant>& tenant = tenants_[name];
    if (tenant == nullptr) tenant = std::make_shared<Tenant>(Tenant{.name = name});
    return tenant;
  };
  for (const config::ApiTenant& limited : file.tenants)
    tenant_of(limited.name)->max_concurrent = limited.max_concurrent;
  std::map<std::string, std::shared_ptr<Account>, std::less<>> accounts;
  for (const config::ApiKey& key : file.keys) {
    const auto known = accounts_.find(key.id);
    // Another secret under an old id is another key.
    if (known == accounts_.end() || known->second->key().hash != key.hash) {
      accounts[key.id] = std::make_shared<Account>(key, tenant_of(key.tenant));
    } else {
      known->second->renew(key, tenant_of(key.tenant));
      accounts[key.id] = known->second;
    }
  }
  accounts_ = std::move(accounts);
  std::erase_if(tenants_, [](const auto& entry) {
    return entry.second.use_count() == 1 && entry.second->max_concurrent == 0;
  });
}

ApiError Gate::refuse(Refusal refusal, ApiError error) {
  ++refusals_[static_cast<std::size_t>(refusal)];
  return error;
}

std::optional<ApiError> Gate::identify(const RequestHead& head, Scope scope,
                                       std::shared_ptr<Account>& account) {
  account = nullptr;
  if (!has_keys_ || scope == Scope::kOpen) return std::nullopt;
  const std::string_view token = bearer_token(head);
  if (token.empty()) {
    return refuse(
        Refusal::kNoKey,
        {.status = 401,
         .message = "You didn't provide an API key. Send it as Authorization: Bearer KEY.",
         .code = "invalid_api_key"});
  }
  const auto known = accounts_.find(config::api_key_id(token));
  if (known == accounts_.end() || !config::is_api_key(token, known->second->key())) {
    return refuse(
        Refusal::kWrongKey,
        {.status = 401, .message = "Incorrect API key provided.", .code = "invalid_api_key"});
  }
  const config::ApiKey& key = known->second->key();
  if (!allows(key.scopes, scope)) {
    return refuse(Refusal::kScope,
                  {.status = 403,
                   .message = str_cat("The API key ", key.id, " does not have the scope ",
                                      name_of(scope), "."),
                   .code = "insufficient_scope"});
  }
  account = known->second;
  return std::nullopt;
}

std::optional<ApiError> Gate::admit(Account& account, TimePoint now,
                                    std::optional<Ticket>& ticket) {
  const config::ApiKey& key = account.key();
  Tenant& tenant = *account.tenant();
  if (tenant.max_concurrent > 0 && tenant.running >= tenant.max_concurrent) {
    return refuse(
        Refusal::kConcurrency,
        too_many(str_cat(tenant.running, " requests of yours are in work, and no more may be."),
                 std::chrono::seconds(1)));
  }
  if (const Duration wait = account.tokens().wait(now); wait > Duration::zero()) {
    return refuse(
        Refusal::kTokensPerMinute,
        too_many(str_cat("The limit of ", key.tokens_per_minute, " tokens a minute is reached."),
                 wait));
  }
  if (const Duration wait = account.requests().wait(now); wait > Duration::zero()) {
    return refuse(Refusal::kRequestsPerMinute,
                  too_many(str_cat("The limit of ", key.requests_per_minute,
                                   " requests a minute is reached."),
                           wait));
  }
  account.requests().take(1, now);
  ticket.emplace(account.tenant());
  return std::nullopt;
}

}  // namespace brigade::router
