// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

/// The keys of the HTTP API, in a file of their own.
namespace brigade::config {

struct ApiScopes {
  bool inference = true;
  bool admin = false;    ///< status, drain
  bool metrics = false;  ///< /metrics
  bool operator==(const ApiScopes&) const = default;
};

struct ApiKey {
  std::string id;    ///< 8 hex digits, part of the key; no secret
  std::string name;  ///< for people
  std::string tenant = "default";
  std::string hash;  ///< hash_api_key() of the key
  ApiScopes scopes;
  std::uint64_t requests_per_minute = 0;  ///< 0: no limit
  std::uint64_t tokens_per_minute = 0;    ///< of prompt and answer together; 0: no limit
  bool operator==(const ApiKey&) const = default;
};

struct ApiTenant {
  std::string name;
  std::uint32_t max_concurrent = 0;  ///< requests in work; 0: no limit
  bool operator==(const ApiTenant&) const = default;
};

struct ApiKeyFile {
  std::vector<ApiKey> keys;
  std::vector<ApiTenant> tenants;  ///< those with limits of their own
};

/// A new key: `brg_`, its id, `_`, and 256 random bits in 43 characters.
[[nodiscard]] std::string make_api_key();

/// The id of a key; empty when the text is none.
[[nodiscard]] std::string_view api_key_id(std::string_view key);

/// BLAKE2b-256 of the whole key, in hex. A slow hash is for secrets that can be guessed: nobody
/// tries 2^256 keys, however fast each try is, and a fast one can be checked for each request.
[[nodiscard]] std::string hash_api_key(std::string_view key);

/// Whether the hash is the key's, in a time that does not tell how much of it is right.
[[nodiscard]] bool is_api_key(std::string_view key, const ApiKey& known);

/// TOML:
///
///     [[keys]]
///     id = "3f9a12cd"
///     name = "chat front end"
///     tenant = "web"
///     hash = "..."
///     scopes = ["inference"]            # and "admin", "metrics"
///     requests_per_minute = 600         # left out: no limit
///     tokens_per_minute = 100000
///     [[tenants]]
///     name = "web"
///     max_concurrent = 32
///
/// Refused: a file that others than its owner may write, unknown keys, scopes and ids, an id or a
/// tenant twice.
[[nodiscard]] Result<ApiKeyFile> load_api_keys(const std::string& path);
[[nodiscard]] Result<ApiKeyFile> parse_api_keys(std::string_view toml);

/// Writes the file with mode 0600, whole or not at all.
[[nodiscard]] Status save_api_keys(const std::string& path, const ApiKeyFile& file);

/// `inference`, `admin`, `metrics`.
[[nodiscard]] Result<ApiScopes> parse_scopes(const std::vector<std::string>& names);
[[nodiscard]] std::vector<std::string> to_names(const ApiScopes& scopes);

}  // namespace brigade::config
