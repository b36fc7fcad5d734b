// SPDX-License-Identifier: Apache-2.0
#include "tools/keys.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "common/base/strings.h"
#include "common/net/keys.h"

namespace brigade::tools {
namespace {

using net::Keys;
using net::Role;

constexpr Role kPeerRoles[] = {Role::kService, Role::kWorker, Role::kOperator};

std::string file_of(const std::string& directory, Role role) {
  return str_cat(directory, "/", net::to_string(role), ".toml");
}

Status make_directory(const std::string& directory) {
  if (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return invalid_argument(str_cat("cannot make ", quoted(directory), ": ", std::strerror(errno)));
}

}  // namespace

Status write_keys(const std::string& directory) {
  RETURN_IF_ERROR(make_directory(directory));
  for (Role role : {Role::kRouter, Role::kService, Role::kWorker, Role::kOperator}) {
    if (std::filesystem::exists(file_of(directory, role))) {
      return failed_precondition(str_cat(file_of(directory, role),
                                         " exists: nothing was written. New keys lock out all who "
                                         "have the old ones; choose another directory"));
    }
  }
  Keys router{.role = Role::kRouter, .own = {}, .server_key = {}, .peers = {}};
  ASSIGN_OR_RETURN(router.own, net::generate_key_pair());
  for (Role role : kPeerRoles) {
    Keys peer{.role = role, .own = {}, .server_key = router.own.public_key, .peers = {}};
    ASSIGN_OR_RETURN(peer.own, net::generate_key_pair());
    RETURN_IF_ERROR(net::save_keys(file_of(directory, role), peer, /*replace=*/false));
    router.peers.push_back({.public_key = peer.own.public_key,
                            .role = role,
                            .name = std::string(net::to_string(role))});
    std::cout << "wrote " << file_of(directory, role) << "\n";
  }
  RETURN_IF_ERROR(net::save_keys(file_of(directory, Role::kRouter), router, /*replace=*/false));
  std::cout
      << "wrote " << file_of(directory, Role::kRouter)
      << "\nGive each process its own file (--keys) and keep it from others: it holds a secret.\n";
  return {};
}

}  // namespace brigade::tools
