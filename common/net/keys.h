// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

/// CURVE keys: who a process is, and whom it lets in.
namespace brigade::net {

/// What a key may do. kNone: not authenticated (loopback or ipc without keys).
enum class Role : std::uint8_t { kNone = 0, kService = 1, kWorker = 2, kOperator = 3, kRouter = 4 };

[[nodiscard]] std::string_view to_string(Role role);
[[nodiscard]] Result<Role> parse_role(std::string_view text);

/// Z85, 40 characters each.
struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

struct AllowedPeer {
  std::string public_key;
  Role role = Role::kNone;
  std::string name;  ///< for people
};

/// A process's key file. A router's lists the peers it lets in; a worker's, service's or operator's
/// names the router's public key.
struct Keys {
  Role role = Role::kNone;
  KeyPair own;
  std::string server_key;          ///< clients: the router's public key
  std::vector<AllowedPeer> peers;  ///< the router
};

[[nodiscard]] Result<KeyPair> generate_key_pair();

/// 40 Z85 characters, and none of the keys published as examples; `field` names it in the error.
[[nodiscard]] Status check_public_key(const std::string& key, std::string_view field);

/// TOML:
///
///     role = "worker"
///     public_key = "..."
///     secret_key = "..."
///     server_key = "..."          # clients
///     [[peers]]                   # the router
///     role = "service"
///     public_key = "..."
///     name = "chat front end"
///
/// Refused: a file that others than its owner may read or write, keys that are not a pair or are
/// the published examples, unknown roles, the same peer twice.
[[nodiscard]] Result<Keys> load_keys(const std::string& path);

/// Writes the file with mode 0600, whole or not at all. An existing file is refused unless
/// `replace`.
[[nodiscard]] Status save_keys(const std::string& path, const Keys& keys, bool replace);

}  // namespace brigade::net
