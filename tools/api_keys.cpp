// SPDX-License-Identifier: Apache-2.0
#include "tools/api_keys.h"

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>

#include "common/base/strings.h"
#include "common/config/api_keys.h"

namespace brigade::tools {
namespace {

using config::ApiKey;
using config::ApiKeyFile;
using config::ApiTenant;

std::string limit_text(std::uint64_t limit) {
  return limit == 0 ? "-" : std::to_string(limit);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : ",") + word;
  return text;
}

}  // namespace

Status add_api_key(const std::string& path, const NewApiKey& wanted) {
  ApiKeyFile file;
  if (std::filesystem::exists(path)) {
    ASSIGN_OR_RETURN(file, config::load_api_keys(path));
  }
  if (wanted.tenant.empty()) return invalid_argument("the tenant has no name");
  const auto is_taken = [&file](std::string_view id) {
    return std::ranges::any_of(file.keys, [&](const ApiKey& key) { return key.id == id; });
  };
  std::string secret = config::make_api_key();
  while (is_taken(config::api_key_id(secret)))
    secret = config::make_api_key();
  ApiKey key{.id = std::string(config::api_key_id(secret)),
             .name = wanted.name,
             .tenant = wanted.tenant,
             .hash = config::hash_api_key(secret),
             .scopes = {},
             .requests_per_minute = wanted.requests_per_minute,
             .tokens_per_minute = wanted.tokens_per_minute};
  ASSIGN_OR_RETURN(key.scopes, config::parse_scopes(wanted.scopes));
  file.keys.push_back(std::move(key));
  RETURN_IF_ERROR(config::save_api_keys(path, file));
  std::cout << secret << '\n';
  std::cerr << "This is the only time that the key is shown: " << path << " has its hash alone.\n";
  return {};
}

Status list_api_keys(const std::string& path) {
  ASSIGN_OR_RETURN(const ApiKeyFile file, config::load_api_keys(path));
  const auto row = [](const auto& id, const auto& tenant, const auto& scopes, const auto& requests,
                      const auto& tokens, const auto& name) {
    std::cout << std::left << std::setw(10) << id << std::setw(16) << tenant << std::setw(26)
              << scopes << std::setw(14) << requests << std::setw(14) << tokens << name << '\n';
  };
  row("ID", "TENANT", "SCOPES", "REQUESTS/MIN", "TOKENS/MIN", "NAME");
  for (const ApiKey& key : file.keys) {
    row(key.id, key.tenant, joined(to_names(key.scopes)), limit_text(key.requests_per_minute),
        limit_text(key.tokens_per_minute), key.name);
  }
  for (const ApiTenant& tenant : file.tenants) {
    std::cout << "tenant " << tenant.name << ": at most " << limit_text(tenant.max_concurrent)
              << " requests at a time\n";
  }
  return {};
}

Status revoke_api_key(const std::string& path, const std::string& id) {
  ASSIGN_OR_RETURN(ApiKeyFile file, config::load_api_keys(path));
  if (std::erase_if(file.keys, [&](const ApiKey& key) { return key.id == id; }) == 0) {
    return not_found(str_cat("there is no key ", quoted(id), " in ", path,
                             ": `brigade api-keys list ", path, "` shows those there are"));
  }
  return config::save_api_keys(path, file);
}

Status limit_tenant(const std::string& path, const std::string& tenant,
                    std::uint32_t max_concurrent) {
  if (tenant.empty()) return invalid_argument("the tenant has no name");
  ASSIGN_OR_RETURN(ApiKeyFile file, config::load_api_keys(path));
  std::erase_if(file.tenants, [&](const ApiTenant& known) { return known.name == tenant; });
  if (max_concurrent > 0) {
    file.tenants.push_back({.name = tenant, .max_concurrent = max_concurrent});
  }
  return config::save_api_keys(path, file);
}

}  // namespace brigade::tools
