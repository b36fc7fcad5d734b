// SPDX-License-Identifier: Apache-2.0
#include "common/net/keys.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "common/base/files.h"
#include "common/base/strings.h"

namespace brigade::net {
namespace {

constexpr std::size_t kKeyLength = 40;

/// Public keys printed in libzmq's manual: anyone has their secrets.
constexpr std::array<std::string_view, 2> kPublishedKeys = {
    "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"};

Status check_pair(const KeyPair& pair) {
  RETURN_IF_ERROR(check_public_key(pair.public_key, "public_key"));
  char derived[kKeyLength + 1];
  if (pair.secret_key.size() != kKeyLength ||
      zmq_curve_public(derived, pair.secret_key.c_str()) != 0) {
    return invalid_argument("secret_key is not a key of 40 Z85 characters");
  }
  if (pair.public_key != derived) return invalid_argument("public_key and secret_key are no pair");
  return {};
}

Status check_mode(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return not_found(str_cat("no key file ", quoted(path, 200)));
  if ((info.st_mode & 077) != 0) {
    return Status(
        StatusCode::kPermissionDenied,
        str_cat("key file ", quoted(path, 200), " is open to others than its owner: chmod 600 it"));
  }
  return {};
}

Result<AllowedPeer> read_peer(const toml::node& node) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return invalid_argument("peers is a list of tables: [[peers]]");
  AllowedPeer peer;
  peer.public_key = (*table)["public_key"].value_or<std::string>("");
  peer.name = (*table)["name"].value_or<std::string>("");
  RETURN_IF_ERROR(check_public_key(peer.public_key, "public_key of a peer"));
  ASSIGN_OR_RETURN(peer.role, parse_role((*table)["role"].value_or<std::string>("")));
  return peer;
}

Result<Keys> read_table(const toml::table& table) {
  Keys keys;
  ASSIGN_OR_RETURN(keys.role, parse_role(table["role"].value_or<std::string>("")));
  keys.own.public_key = table["public_key"].value_or<std::string>("");
  keys.own.secret_key = table["secret_key"].value_or<std::string>("");
  keys.server_key = table["server_key"].value_or<std::string>("");
  RETURN_IF_ERROR(check_pair(keys.own));
  if (!keys.server_key.empty()) RETURN_IF_ERROR(check_public_key(keys.server_key, "server_key"));
  if (!table.contains("peers")) return keys;
  const toml::array* peers = table["peers"].as_array();
  if (peers == nullptr) return invalid_argument("peers is a list of tables: [[peers]]");
  std::set<std::string> seen;
  for (const toml::node& node : *peers) {
    ASSIGN_OR_RETURN(AllowedPeer peer, read_peer(node));
    if (!seen.insert(peer.public_key).second) {
      return invalid_argument(str_cat("peer ", quoted(peer.public_key), " is there twice"));
    }
    keys.peers.push_back(std::move(peer));
  }
  return keys;
}

/// TOML's literal strings ('...') take no escapes; Z85 has no quote in its alphabet, names are
/// escaped by toml++.
std::string to_toml(const Keys& keys) {
  toml::table table;
  table.insert("role", std::string(to_string(keys.role)));
  table.insert("public_key", keys.own.public_key);
  table.insert("secret_key", keys.own.secret_key);
  if (!keys.server_key.empty()) table.insert("server_key", keys.server_key);
  toml::array peers;
  for (const AllowedPeer& peer : keys.peers) {
    peers.push_back(toml::table{{"role", std::string(to_string(peer.role))},
                                {"public_key", peer.public_key},
                                {"name", peer.name}});
  }
  if (!peers.empty()) table.insert("peers", std::move(peers));
  std::ostringstream out;
  out << table << '\n';
  return out.str();
}

}  // namespace

Status check_public_key(const std::string& key, std::string_view field) {
  std::array<std::uint8_t, 32> raw{};
  if (key.size() != kKeyLength || zmq_z85_decode(raw.data(), key.c_str()) == nullptr) {
    return invalid_argument(str_cat(field, " is not a key of ", kKeyLength, " Z85 characters"));
  }
  if (std::ranges::find(kPublishedKeys, key) != kPublishedKeys.end()) {
    return invalid_argument(
        str_cat(field, " is an example from ZeroMQ's manual: anyone has its secret"));
  }
  return {};
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kNone:
      return "none";
    case Role::kService:
      return "service";
    case Role::kWorker:
      return "worker";
    case Role::kOperator:
      return "operator";
    case Role::kRouter:
      return "router";
  }
  return "none";
}

Result<Role> parse_role(std::string_view text) {
  for (const Role role : {Role::kService, Role::kWorker, Role::kOperator, Role::kRouter}) {
    if (to_string(role) == text) return role;
  }
  return invalid_argument(
      str_cat("role ", quoted(text), " is none of service, worker, operator, router"));
}

Result<KeyPair> generate_key_pair() {
  char public_key[kKeyLength + 1];
  char secret_key[kKeyLength + 1];
  if (zmq_curve_keypair(public_key, secret_key) != 0) {
    return failed_precondition(str_cat("no key pair: ", zmq_strerror(zmq_errno())));
  }
  return KeyPair{.public_key = public_key, .secret_key = secret_key};
}

Result<Keys> load_keys(const std::string& path) {
  RETURN_IF_ERROR(check_mode(path));
  try {
    auto keys = read_table(toml::parse_file(path));
    if (!keys.ok()) return keys.status().with_context(str_cat("key file ", quoted(path, 200)));
    return keys;
  } catch (const toml::parse_error& error) {
    return invalid_argument(str_cat("key file ", quoted(path, 200), ", line ",
                                    error.source().begin.line, ": ", error.description()));
  }
}

Status save_keys(const std::string& path, const Keys& keys, bool replace) {
  RETURN_IF_ERROR(check_pair(keys.own));
  if (!replace && access(path.c_str(), F_OK) == 0) {
    return failed_precondition(str_cat(quoted(path, 200), " exists: its keys would be lost"));
  }
  return replace_file(path, to_toml(keys), 0600);
}

}  // namespace brigade::net
