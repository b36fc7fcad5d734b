// SPDX-License-Identifier: Apache-2.0
#include "common/config/api_keys.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "common/base/strings.h"

using namespace brigade;
using namespace brigade::config;

namespace {

const std::string kHash(64, 'a');

std::string key_table(std::string_view rest = "", std::string_view id = "0123abcd") {
  return str_cat("[[keys]]\nid = \"", id, "\"\nhash = \"", kHash, "\"\n", rest, "\n");
}

}  // namespace

TEST_CASE("keys are new each time, carry their id, and are told by their hash") {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string key = make_api_key();
    CHECK(key.size() == 56);
    CHECK(seen.insert(key).second);
    CHECK(key.substr(4, 8) == api_key_id(key));
    const ApiKey known = {.hash = hash_api_key(key)};
    CHECK(is_api_key(key, known));
    CHECK_FALSE(is_api_key(make_api_key(), known));
  }
  for (const char* none :
       {"", "brg_", "sk-123", "brg_0123ABCD_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    CHECK(api_key_id(none).empty());
  }
  // BLAKE2b-256 of "abc", as Python's hashlib gives it.
  CHECK(hash_api_key("abc") == "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST_CASE("a key file comes back as it was saved, readable by its owner alone") {
  const std::string folder = std::filesystem::temp_directory_path() / "brigade-api-keys-test";
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/keys.toml";
  const ApiKeyFile file = {.keys = {{.id = "0123abcd",
                                     .name = "the \"front\" end\n",
                                     .tenant = "web",
                                     .hash = kHash,
                                     .scopes = {.inference = true, .admin = true, .metrics = true},
                                     .requests_per_minute = 60,
                                     .tokens_per_minute = 100'000},
                                    {.id = "0123abce", .hash = kHash}},
                           .tenants = {{.name = "web", .max_concurrent = 8}}};
  REQUIRE(save_api_keys(path, file).ok());
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  const auto loaded = load_api_keys(path);
  REQUIRE(loaded.ok());
  CHECK(loaded->keys == file.keys);
  CHECK(loaded->tenants == file.tenants);
  REQUIRE(chmod(path.c_str(), 0622) == 0);
  CHECK(load_api_keys(path).status().code() == StatusCode::kPermissionDenied);
  std::filesystem::remove_all(folder);
  CHECK(load_api_keys(path).status().code() == StatusCode::kNotFound);
}

TEST_CASE("a key file with a mistake is refused, and the mistake named") {
  struct Row {
    std::string text;
    std::string_view named;
  };
  const Row rows[] = {
      {"keys = 3", "keys"},
      {"key = []", "key"},
      {"[[keys]]\nid = \"0123abcd\"\n", "hash"},
      {key_table("", "0123ABCD"), "id"},
      {key_table("scopes = [\"root\"]"), "root"},
      {key_table("scopes = \"admin\""), "scopes"},
      {key_table("tokens_per_minute = -1"), "tokens_per_minute"},
      {key_table("tokens_per_minute = \"10\""), "tokens_per_minute"},
      {key_table("tenant = \"\""), "tenant"},
      {key_table("token_per_minute = 10"), "token_per_minute"},
      {key_table() + key_table(), "twice"},
      {"[[tenants]]\nmax_concurrent = 3\n", "name"},
      {"[[tenants]]\nname = \"a\"\nmax_concurrent = 4294967296\n", "max_concurrent"},
      {"[[keys]]\nid = ", "line"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto file = parse_api_keys(row.text);
    REQUIRE_FALSE(file.ok());
    CHECK(file.status().message().find(row.named) != std::string::npos);
  }
  CHECK(parse_api_keys("")->keys.empty());
  CHECK(parse_api_keys(key_table())->keys[0].scopes == ApiScopes{});
}
