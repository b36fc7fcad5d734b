// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/gate.h"

#include <doctest/doctest.h>

#include "common/base/strings.h"

using namespace brigade;
using namespace brigade::router;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

struct Key {
  std::string secret = config::make_api_key();
  config::ApiKey known = {.id = std::string(config::api_key_id(secret)),
                          .tenant = "web",
                          .hash = config::hash_api_key(secret)};
};

RequestHead with_key(std::string_view value) {
  return {.fields = {{"authorization", std::string(value)}}};
}

/// 0 when it is let in.
int status_of(Gate& gate, const RequestHead& head, Scope scope) {
  std::shared_ptr<Account> account;
  const auto error = gate.identify(head, scope, account);
  CHECK((error || !gate.has_keys() || scope == Scope::kOpen) == (account == nullptr));
  return error ? error->status : 0;
}

std::shared_ptr<Account> account_of(Gate& gate, const Key& key) {
  std::shared_ptr<Account> account;
  REQUIRE_FALSE(gate.identify(with_key("Bearer " + key.secret), Scope::kInference, account));
  return account;
}

/// Seconds after which to come again; 0 when it is let in.
std::uint32_t retry_after(Gate& gate, Account& account, TimePoint now) {
  std::optional<Ticket> ticket;
  const auto error = gate.admit(account, now, ticket);
  if (error) CHECK(error->status == 429);
  return error ? error->retry_after_s : 0;
}

}  // namespace

TEST_CASE("without keys everyone may do everything, also with an empty token") {
  Gate gate;
  for (const Scope scope : {Scope::kOpen, Scope::kInference, Scope::kAdmin, Scope::kMetrics}) {
    CHECK(status_of(gate, {}, scope) == 0);
    CHECK(status_of(gate, with_key("Bearer "), scope) == 0);
    CHECK(status_of(gate, with_key("Bearer anything"), scope) == 0);
  }
}

TEST_CASE("with keys only a right one is let in, and only to what it allows") {
  const Key key;
  Key metrics;
  metrics.known.scopes = {.inference = false, .metrics = true};
  Gate gate;
  gate.set_keys({.keys = {key.known, metrics.known}});
  CHECK(status_of(gate, with_key("Bearer " + key.secret), Scope::kInference) == 0);
  CHECK(status_of(gate, with_key("bearer  " + key.secret), Scope::kInference) == 0);
  CHECK(status_of(gate, with_key("Bearer " + key.secret), Scope::kAdmin) == 403);
  CHECK(status_of(gate, with_key("Bearer " + key.secret), Scope::kMetrics) == 403);
  CHECK(status_of(gate, with_key("Bearer " + metrics.secret), Scope::kMetrics) == 0);
  CHECK(status_of(gate, with_key("Bearer " + metrics.secret), Scope::kInference) == 403);
  CHECK(status_of(gate, {}, Scope::kOpen) == 0);
  CHECK(status_of(gate, {}, Scope::kInference) == 401);
  std::string other = key.secret;
  other.back() = other.back() == 'A' ? 'B' : 'A';
  const RequestHead twice = {.fields = {{"authorization", "Bearer " + key.secret},
                                        {"authorization", "Bearer " + key.secret}}};
  CHECK(status_of(gate, twice, Scope::kInference) == 401);
  for (const std::string& wrong :
       {std::string(), std::string("Bearer"), std::string("Bearer "), "Basic " + key.secret,
        key.secret, "Bearer " + other, "Bearer " + key.secret + "A", "Bearer " + key.known.hash,
        "Bearer " + key.secret.substr(0, 20), "Bearer " + config::make_api_key()}) {
    CAPTURE(wrong);
    CHECK(status_of(gate, with_key(wrong), Scope::kInference) == 401);
  }
}

TEST_CASE("requests a minute: a minute's worth at once, then one at a time, when it was said") {
  Key key;
  key.known.requests_per_minute = 6;
  Gate gate;
  gate.set_keys({.keys = {key.known}});
  const auto account = account_of(gate, key);
  const TimePoint start = Clock::now();
  for (int i = 0; i < 6; ++i)
    CHECK(retry_after(gate, *account, start) == 0);
  CHECK(retry_after(gate, *account, start) == 10);
  CHECK(retry_after(gate, *account, start + milliseconds(9500)) == 1);
  CHECK(retry_after(gate, *account, start + seconds(10)) == 0);
  CHECK(retry_after(gate, *account, start + seconds(10)) == 10);
}

TEST_CASE("over an hour a key gets its tokens a minute, however they come") {
  Key key;
  key.known.tokens_per_minute = 1000;
  Gate gate;
  gate.set_keys({.keys = {key.known}});
  const auto account = account_of(gate, key);
  const TimePoint start = Clock::now();
  double used = 0;
  for (int second = 0; second < 3600; ++second) {
    const TimePoint now = start + seconds(second);
    if (retry_after(gate, *account, now) > 0) continue;
    const int tokens = 100 + second % 700;  // paid when it has been let in
    account->tokens().take(tokens, now);
    used += tokens;
  }
  CHECK(used <= 1000 * 61 + 800);
  CHECK(used >= 1000 * 59);
}

TEST_CASE("a tenant's requests in work are bounded over all its keys, and places come back") {
  const Key first;
  const Key second;
  Gate gate;
  gate.set_keys(
      {.keys = {first.known, second.known}, .tenants = {{.name = "web", .max_concurrent = 2}}});
  const TimePoint now = Clock::now();
  std::optional<Ticket> one;
  std::optional<Ticket> two;
  std::optional<Ticket> three;
  CHECK_FALSE(gate.admit(*account_of(gate, first), now, one));
  CHECK_FALSE(gate.admit(*account_of(gate, second), now, two));
  const auto error = gate.admit(*account_of(gate, first), now, three);
  REQUIRE(error);
  CHECK(error->status == 429);
  CHECK(error->retry_after_s == 1);
  one.reset();
  CHECK_FALSE(gate.admit(*account_of(gate, first), now, three));
  CHECK(gate.refusals()[static_cast<std::size_t>(Refusal::kConcurrency)] == 1);
}

TEST_CASE("new keys take the place of old ones; what was used up stays used up") {
  Key key;
  key.known.requests_per_minute = 1;
  const Key revoked;
  Gate gate;
  gate.set_keys({.keys = {key.known, revoked.known}});
  const TimePoint now = Clock::now();
  std::optional<Ticket> running;
  CHECK_FALSE(gate.admit(*account_of(gate, revoked), now, running));
  CHECK(retry_after(gate, *account_of(gate, key), now) == 0);
  gate.set_keys({.keys = {key.known}, .tenants = {{.name = "web", .max_concurrent = 1}}});
  CHECK(status_of(gate, with_key("Bearer " + revoked.secret), Scope::kInference) == 401);
  CHECK(retry_after(gate, *account_of(gate, key), now) == 1);  // its tenant's other request runs
  running.reset();
  CHECK(retry_after(gate, *account_of(gate, key), now) == 60);
  key.known.requests_per_minute = 2;
  gate.set_keys({.keys = {key.known}});
  CHECK(retry_after(gate, *account_of(gate, key), now) == 0);
}
