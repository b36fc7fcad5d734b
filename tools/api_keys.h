// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

/// The file of API keys of a router's HTTP door (`brigade api-keys`).
namespace brigade::tools {

struct NewApiKey {
  std::string name;
  std::string tenant = "default";
  std::vector<std::string> scopes = {"inference"};
  std::uint64_t requests_per_minute = 0;  ///< 0: no limit
  std::uint64_t tokens_per_minute = 0;
};

/// Adds a key to the file, which is made when it is not there, and prints the key: it is kept
/// nowhere.
[[nodiscard]] Status add_api_key(const std::string& path, const NewApiKey& wanted);
/// Prints a line for each key and each tenant with a limit.
[[nodiscard]] Status list_api_keys(const std::string& path);
[[nodiscard]] Status revoke_api_key(const std::string& path, const std::string& id);
/// Sets how many requests of a tenant may be in work at a time; 0: any number.
[[nodiscard]] Status limit_tenant(const std::string& path, const std::string& tenant,
                                  std::uint32_t max_concurrent);

}  // namespace brigade::tools
