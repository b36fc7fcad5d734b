// SPDX-License-Identifier: Apache-2.0
#include "common/net/keys.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace brigade::net {
namespace {

struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "brigade-keys-XXXXXX";
    path = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  chmod(path.c_str(), 0600);
}

Keys router_keys() {
  return {.role = Role::kRouter,
          .own = generate_key_pair().value(),
          .server_key = "",
          .peers = {{generate_key_pair()->public_key, Role::kWorker, "gpu \"7\"\nrack"},
                    {generate_key_pair()->public_key, Role::kService, "front"}}};
}

}  // namespace

TEST_CASE("keys come back from their file as they were, readable by their owner alone") {
  TemporaryFolder folder;
  const std::string path = folder.path / "router.toml";
  const Keys keys = router_keys();
  REQUIRE(save_keys(path, keys, /*replace=*/false).ok());
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  const auto loaded = load_keys(path);
  REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
  CHECK(loaded->role == keys.role);
  CHECK(loaded->own.public_key == keys.own.public_key);
  CHECK(loaded->own.secret_key == keys.own.secret_key);
  REQUIRE(loaded->peers.size() == 2);
  CHECK(loaded->peers[0].public_key == keys.peers[0].public_key);
  CHECK(loaded->peers[0].name == keys.peers[0].name);
  CHECK(loaded->peers[1].role == Role::kService);
  CHECK(save_keys(path, keys, /*replace=*/false).code() == StatusCode::kFailedPrecondition);
  CHECK(save_keys(path, keys, /*replace=*/true).ok());
}

TEST_CASE("a key file open to others is refused") {
  TemporaryFolder folder;
  const std::string path = folder.path / "keys.toml";
  REQUIRE(save_keys(path, router_keys(), /*replace=*/false).ok());
  chmod(path.c_str(), 0640);
  CHECK(load_keys(path).status().code() == StatusCode::kPermissionDenied);
}

TEST_CASE("wrong key files are refused with a reason") {
  TemporaryFolder folder;
  const std::string path = folder.path / "keys.toml";
  const KeyPair a = generate_key_pair().value();
  const KeyPair b = generate_key_pair().value();
  const std::string pair = "role = \"worker\"\npublic_key = '" + a.public_key +
                           "'\nsecret_key = '" + a.secret_key + "'\n";
  const auto error_of = [&](const std::string& text) {
    write(path, text);
    return load_keys(path).status().message();
  };
  CHECK(error_of(pair).empty());
  CHECK(error_of("role = ").find("line 1") != std::string::npos);
  CHECK(error_of("role = \"king\"\n").find("king") != std::string::npos);
  CHECK(error_of("role = \"worker\"\npublic_key = '" + a.public_key + "'\nsecret_key = '" +
                 b.secret_key + "'\n")
            .find("no pair") != std::string::npos);
  CHECK(error_of(pair + "server_key = 'short'\n").find("server_key") != std::string::npos);
  CHECK(
      error_of(pair + "server_key = 'rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7'\n").find("manual") !=
      std::string::npos);
  const std::string peer = "[[peers]]\nrole = 'service'\npublic_key = '" + b.public_key + "'\n";
  CHECK(error_of(pair + peer).empty());
  CHECK(error_of(pair + peer + peer).find("twice") != std::string::npos);
  CHECK(load_keys(path + ".none").status().code() == StatusCode::kNotFound);
}

}  // namespace brigade::net
