// SPDX-License-Identifier: Apache-2.0
#include "common/config/api_keys.h"

#include <sodium.h>
#include <sys/stat.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <sstream>

#include "common/base/check.h"
#include "common/base/files.h"
#include "common/base/strings.h"

namespace brigade::config {
namespace {

constexpr std::string_view kPrefix = "brg_";
constexpr std::size_t kIdBytes = 4;
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kIdLength = 2 * kIdBytes;
constexpr std::size_t kSecretLength = 43;
constexpr std::size_t kKeyLength = kPrefix.size() + kIdLength + 1 + kSecretLength;
constexpr std::size_t kMaxFileBytes = 16 << 20;
constexpr std::size_t kMaxNameBytes = 256;

template <std::size_t kSize>
std::string to_hex(const std::array<std::uint8_t, kSize>& bytes) {
  std::string text(2 * kSize + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  text.pop_back();
  return text;
}

bool is_hex(std::string_view text, std::size_t length) {
  return text.size() == length &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status check_mode(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return not_found(str_cat("there is no key file ", quoted(path, 200)));
  }
  if ((info.st_mode & 022) != 0) {
    return Status(StatusCode::kPermissionDenied,
                  str_cat("others than its owner may write ", quoted(path, 200),
                          ", and let themselves in: chmod go-w it"));
  }
  return {};
}

/// The members of one table, each asked for by name; what nobody asked for is an error.
class TableReader {
 public:
  TableReader(const toml::node& node, std::string_view kind) : table_(node.as_table()) {
    if (table_ == nullptr) fail(str_cat(kind, " is a list of tables: [[", kind, "]]"));
  }

  std::string text(std::string_view name, std::string_view otherwise = "") {
    const toml::node* node = find(name);
    if (node == nullptr) return std::string(otherwise);
    const auto value = node->value_exact<std::string>();
    if (!value || value->size() > kMaxNameBytes) {
      fail(str_cat(name, " is a string of at most ", kMaxNameBytes, " bytes"));
      return "";
    }
    return *value;
  }
  std::uint64_t number(std::string_view name, std::uint64_t max) {
    const toml::node* node = find(name);
    if (node == nullptr) return 0;
    const auto value = node->value_exact<std::int64_t>();
    if (value && *value >= 0 && static_cast<std::uint64_t>(*value) <= max) {
      return static_cast<std::uint64_t>(*value);
    }
    fail(str_cat(name, " is a whole number from 0 to ", max));
    return 0;
  }
  std::vector<std::string> texts(std::string_view name) {
    std::vector<std::string> values;
    const toml::node* node = find(name);
    if (node == nullptr) return {"inference"};
    const toml::array* list = node->as_array();
    if (list == nullptr) fail(str_cat(name, " is a list of strings"));
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const auto value = list->get(i)->value_exact<std::string>();
      if (!value) fail(str_cat(name, " is a list of strings"));
      values.push_back(value.value_or(""));
    }
    return values;
  }
  void fail(std::string message) {
    if (status_.ok()) status_ = invalid_argument(std::move(message));
  }
  Status finish() {
    if (table_ == nullptr) return status_;
    for (const auto& [key, node] : *table_) {
      if (!asked_.contains(key.str())) fail(str_cat("unknown member ", quoted(key.str())));
    }
    return status_;
  }

 private:
  const toml::node* find(std::string_view name) {
    asked_.emplace(name);
    return table_ == nullptr ? nullptr : table_->get(name);
  }

  const toml::table* table_;
  std::set<std::string, std::less<>> asked_;
  Status status_;
};

Result<ApiKey> read_key(const toml::node& node) {
  TableReader reader(node, "keys");
  constexpr auto kMaxRate = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  ApiKey key{.id = reader.text("id"),
             .name = reader.text("name"),
             .tenant = reader.text("tenant", "default"),
             .hash = reader.text("hash"),
             .scopes = {},
             .requests_per_minute = reader.number("requests_per_minute", kMaxRate),
             .tokens_per_minute = reader.number("tokens_per_minute", kMaxRate)};
  auto scopes = parse_scopes(reader.texts("scopes"));
  if (!scopes.ok()) {
    reader.fail(scopes.status().message());
  } else {
    key.scopes = *scopes;
  }
  if (!is_hex(key.id, kIdLength)) reader.fail("id is 8 hex digits");
  if (!is_hex(key.hash, 2 * crypto_generichash_BYTES)) reader.fail("hash is 64 hex digits");
  if (key.tenant.empty()) reader.fail("tenant is empty");
  const Status status = reader.finish();
  if (!status.ok()) return status.with_context(str_cat("key ", quoted(key.id)));
  return key;
}

Result<ApiTenant> read_tenant(const toml::node& node) {
  TableReader reader(node, "tenants");
  ApiTenant tenant{.name = reader.text("name"),
                   .max_concurrent = static_cast<std::uint32_t>(
                       reader.number("max_concurrent", std::numeric_limits<std::uint32_t>::max()))};
  if (tenant.name.empty()) reader.fail("name is missing");
  const Status status = reader.finish();
  if (!status.ok()) return status.with_context(str_cat("tenant ", quoted(tenant.name)));
  return tenant;
}

/// Every table of the list `name`, no two of them with the same `id`.
template <typename T>
Status read_list(const toml::table& root, std::string_view name, std::string T::*id,
                 Result<T> (*read)(const toml::node&), std::vector<T>& out) {
  const toml::node* node = root.get(name);
  if (node == nullptr) return {};
  const toml::array* list = node->as_array();
  if (list == nullptr)
    return invalid_argument(str_cat(name, " is a list of tables: [[", name, "]]"));
  std::set<std::string> seen;
  for (const toml::node& item : *list) {
    ASSIGN_OR_RETURN(T value, read(item));
    if (!seen.insert(value.*id).second) {
      return invalid_argument(str_cat(name, ": ", quoted(value.*id), " is there twice"));
    }
    out.push_back(std::move(value));
  }
  return {};
}

}  // namespace

std::string make_api_key() {
  INVARIANT_GE(sodium_init(), 0);
  std::array<std::uint8_t, kIdBytes> id{};
  std::array<std::uint8_t, kSecretBytes> secret{};
  randombytes_buf(id.data(), id.size());
  randombytes_buf(secret.data(), secret.size());
  std::string text(kSecretLength + 1, '\0');
  sodium_bin2base64(text.data(), text.size(), secret.data(), secret.size(),
                    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  text.pop_back();
  return str_cat(kPrefix, to_hex(id), '_', text);
}

std::string_view api_key_id(std::string_view key) {
  if (key.size() != kKeyLength || !key.starts_with(kPrefix)) return "";
  const std::string_view id = key.substr(kPrefix.size(), kIdLength);
  return is_hex(id, kIdLength) && key[kPrefix.size() + kIdLength] == '_' ? id : "";
}

std::string hash_api_key(std::string_view key) {
  std::array<std::uint8_t, crypto_generichash_BYTES> hash{};
  crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(key.data()),
                     key.size(), nullptr, 0);
  return to_hex(hash);
}

bool is_api_key(std::string_view key, const ApiKey& known) {
  const std::string hash = hash_api_key(key);
  return hash.size() == known.hash.size() &&
         sodium_memcmp(hash.data(), known.hash.data(), hash.size()) == 0;
}

Result<ApiKeyFile> parse_api_keys(std::string_view text) {
  try {
    const toml::table root = toml::parse(text);
    for (const auto& [key, node] : root) {
      if (key.str() != "keys" && key.str() != "tenants") {
        return invalid_argument(
            str_cat("unknown key ", quoted(key.str()), "; there are keys and tenants"));
      }
    }
    ApiKeyFile file;
    RETURN_IF_ERROR(read_list(root, "keys", &ApiKey::id, &read_key, file.keys));
    RETURN_IF_ERROR(read_list(root, "tenants", &ApiTenant::name, &read_tenant, file.tenants));
    return file;
  } catch (const toml::parse_error& error) {
    return invalid_argument(str_cat("line ", error.source().begin.line, ": ", error.description()));
  }
}

Result<ApiKeyFile> load_api_keys(const std::string& path) {
  RETURN_IF_ERROR(check_mode(path));
  ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxFileBytes));
  auto file = parse_api_keys(text);
  if (!file.ok()) return file.status().with_context(str_cat("key file ", quoted(path, 200)));
  return file;
}

Status save_api_keys(const std::string& path, const ApiKeyFile& file) {
  toml::table root;
  toml::array keys;
  for (const ApiKey& key : file.keys) {
    toml::array scopes;
    for (const std::string& scope : to_names(key.scopes))
      scopes.push_back(scope);
    toml::table table{{"id", key.id},
                      {"name", key.name},
                      {"tenant", key.tenant},
                      {"hash", key.hash},
                      {"scopes", std::move(scopes)}};
    if (key.requests_per_minute > 0) {
      table.insert("requests_per_minute", static_cast<std::int64_t>(key.requests_per_minute));
    }
    if (key.tokens_per_minute > 0) {
      table.insert("tokens_per_minute", static_cast<std::int64_t>(key.tokens_per_minute));
    }
    keys.push_back(std::move(table));
  }
  root.insert("keys", std::move(keys));
  toml::array tenants;
  for (const ApiTenant& tenant : file.tenants) {
    tenants.push_back(toml::table{{"name", tenant.name},
                                  {"max_concurrent", std::int64_t{tenant.max_concurrent}}});
  }
  root.insert("tenants", std::move(tenants));
  std::ostringstream out;
  out << "# Keys of the HTTP API, as hashes (see `brigade api-keys`). A router takes changes at "
         "once.\n"
      << root << '\n';
  return replace_file(path, out.str(), 0600);
}

Result<ApiScopes> parse_scopes(const std::vector<std::string>& names) {
  ApiScopes scopes{.inference = false};
  for (const std::string& name : names) {
    if (name == "inference") {
      scopes.inference = true;
    } else if (name == "admin") {
      scopes.admin = true;
    } else if (name == "metrics") {
      scopes.metrics = true;
    } else {
      return invalid_argument(
          str_cat("scope ", quoted(name), " is none of inference, admin, metrics"));
    }
  }
  return scopes;
}

std::vector<std::string> to_names(const ApiScopes& scopes) {
  std::vector<std::string> names;
  if (scopes.inference) names.emplace_back("inference");
  if (scopes.admin) names.emplace_back("admin");
  if (scopes.metrics) names.emplace_back("metrics");
  return names;
}

}  // namespace brigade::config
