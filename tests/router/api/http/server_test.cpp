// SPDX-License-Identifier: Apache-2.0
// The door's protection: keys, addresses, the admin address, web pages.
#include "router/api/http/server.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "common/base/strings.h"
#include "common/config/api_keys.h"
#include "tests/support/fake_service.h"
#include "tests/support/http_client.h"

using namespace brigade;
using namespace brigade::router;
using namespace brigade::testing;

namespace {

/// A key file in a folder that goes with it.
class KeyFile final {
 public:
  KeyFile() : folder_(std::filesystem::temp_directory_path() / "brigade-door-XXXXXX") {
    REQUIRE(mkdtemp(folder_.data()) != nullptr);
  }
  ~KeyFile() { std::filesystem::remove_all(folder_); }

  /// The key; it counts once save() has been called.
  std::string add(config::ApiKey wanted) {
    const std::string secret = config::make_api_key();
    wanted.id = config::api_key_id(secret);
    wanted.hash = config::hash_api_key(secret);
    file.keys.push_back(std::move(wanted));
    return secret;
  }
  void save() { REQUIRE(config::save_api_keys(path(), file).ok()); }
  [[nodiscard]] std::string path() const { return folder_ + "/keys.toml"; }

  config::ApiKeyFile file;

 private:
  std::string folder_;
};

const std::string kBody = R"({"prompt":"abc","max_tokens":2})";

std::string bearer(const std::string& key) {
  return str_cat("Authorization: Bearer ", key, "\r\n");
}

std::string get_with(const std::string& path, const std::string& header) {
  return str_cat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", header, "\r\n");
}

int complete(const std::string& address, const std::string& key) {
  return ask(address, post("/v1/completions", kBody, bearer(key))).status;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("with keys, requests come from their key's tenant, and errors have OpenAI's shape") {
  KeyFile keys;
  const std::string key = keys.add({.tenant = "web"});
  keys.save();
  FakeService service;
  const auto server = HttpServer::start({.api_keys = keys.path()}, service).value();
  const std::string at = server->address();
  CHECK(complete(at, key) == 200);
  REQUIRE(service.submitted().size() == 1);
  CHECK(service.submitted()[0].tenant == "web");
  const HttpAnswer none = ask(at, post("/v1/completions", kBody));
  CHECK(none.status == 401);
  CHECK(none.reason == "Unauthorized");
  CHECK(none.headers.at("www-authenticate") == "Bearer");
  CHECK(has(none.body, R"("type":"invalid_request_error","param":null,"code":"invalid_api_key")"));
  CHECK(complete(at, config::make_api_key()) == 401);
  const HttpAnswer scope = ask(at, get_with("/status", bearer(key)));
  CHECK(scope.status == 403);
  CHECK(has(scope.body, R"("code":"insufficient_scope")"));
  CHECK(ask(at, get("/health")).status == 200);
  CHECK(ask(at, get("/nothing")).status == 404);
  CHECK(service.submitted().size() == 1);
}

TEST_CASE("who is not let in sends no body") {
  KeyFile keys;
  keys.save();
  FakeService service;
  const auto server = HttpServer::start({.api_keys = keys.path()}, service).value();
  HttpClient client(server->address());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n");
  CHECK(client.receive().status == 401);
  CHECK(client.closed());
}

TEST_CASE("a key's limits are told with the time to wait, and the connection goes on") {
  KeyFile keys;
  const std::string by_requests = keys.add({.requests_per_minute = 1});
  const std::string by_tokens = keys.add({.tokens_per_minute = 3});
  keys.save();
  FakeService service;
  const auto server = HttpServer::start({.api_keys = keys.path()}, service).value();
  for (const std::string& key : {by_requests, by_tokens}) {
    HttpClient client(server->address());
    client.send(post("/v1/completions", kBody, bearer(key)));
    CHECK(client.receive().status == 200);
    client.send(post("/v1/completions", kBody, bearer(key)));
    const HttpAnswer refused = client.receive();
    CHECK(refused.status == 429);
    CHECK(has(refused.body, R"("type":"rate_limit_error")"));
    CHECK(std::stoi(refused.headers.at("retry-after")) > 30);
    client.send(get_with("/v1/models", bearer(key)));
    CHECK(client.receive().status == 200);
  }
}

TEST_CASE("a tenant's place comes back when its client hangs up") {
  KeyFile keys;
  const std::string key = keys.add({.tenant = "web"});
  keys.file.tenants.push_back({.name = "web", .max_concurrent = 1});
  keys.save();
  FakeService service;
  service.hold(true);
  const auto server = HttpServer::start({.api_keys = keys.path()}, service).value();
  HttpClient first(server->address());
  first.send(post("/v1/completions", kBody, bearer(key)));
  REQUIRE(service.wait_for_submitted(1));
  CHECK(complete(server->address(), key) == 429);
  first.close();
  REQUIRE(service.wait_for_cancelled(1));
  service.hold(false);
  CHECK(complete(server->address(), key) == 200);
}

TEST_CASE("keys are read again; a file with a mistake changes nothing") {
  KeyFile keys;
  const std::string old = keys.add({});
  keys.save();
  FakeService service;
  const auto server = HttpServer::start({.api_keys = keys.path()}, service).value();
  HttpClient kept(server->address());
  kept.send(get_with("/v1/models", bearer(old)));
  CHECK(kept.receive().status == 200);
  std::ofstream(keys.path()) << "[[keys]]\nid = 3\n";
  const Status bad = server->reload();
  CHECK(bad.code() == StatusCode::kInvalidArgument);
  CHECK(has(bad.message(), keys.path()));
  CHECK(complete(server->address(), old) == 200);
  keys.file.keys.clear();
  const std::string fresh = keys.add({});
  keys.save();
  REQUIRE(server->reload().ok());
  CHECK(complete(server->address(), fresh) == 200);
  kept.send(get_with("/v1/models", bearer(old)));
  CHECK(kept.receive().status == 401);
}

TEST_CASE("an address that others reach needs keys and TLS, or leave") {
  KeyFile keys;
  keys.save();
  FakeService service;
  const auto start = [&](HttpOptions options) {
    return HttpServer::start(std::move(options), service).status();
  };
  CHECK(start({.at = {.host = "0.0.0.0"}, .api_keys = keys.path()}).code() ==
        StatusCode::kPermissionDenied);
  CHECK(start({.admin = ListenAddress{.host = "0.0.0.0"}, .api_keys = keys.path()}).code() ==
        StatusCode::kPermissionDenied);
  CHECK(start({.tls_certificate = "x.pem"}).code() == StatusCode::kInvalidArgument);
  CHECK(start({.tls_certificate = "/nothing.pem", .tls_key = "/nothing.pem"}).code() ==
        StatusCode::kNotFound);
  CHECK(start({.api_keys = "/nothing.toml"}).code() == StatusCode::kNotFound);
  CHECK(start({.allow_addresses = {"everyone"}}).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("with an admin address, status and drain are there alone") {
  FakeService service;
  const auto server = HttpServer::start({.admin = ListenAddress{}}, service).value();
  const std::string admin = server->admin_url().substr(std::string_view("http://").size());
  REQUIRE(admin != server->address());
  CHECK(ask(server->address(), get("/status")).status == 404);
  CHECK(ask(server->address(), post("/drain", R"({"replica":1})")).status == 404);
  CHECK(ask(server->address(), get("/v1/models")).status == 200);
  CHECK(ask(admin, get("/status")).status == 200);
  CHECK(ask(admin, post("/drain", R"({"replica":1})")).status == 200);
  CHECK(ask(admin, get("/v1/models")).status == 404);
  CHECK(ask(admin, post("/v1/completions", kBody)).status == 404);
  for (const std::string& at : {admin, server->address()})
    CHECK(ask(at, get("/health")).status == 200);
}

TEST_CASE("the admin address answers when the other one is full") {
  FakeService service;
  const auto server =
      HttpServer::start({.admin = ListenAddress{}, .max_connections = 1}, service).value();
  HttpClient holder(server->address());
  holder.send(get("/health"));
  CHECK(holder.receive().status == 200);
  CHECK(HttpClient(server->address()).receive().status == 503);
  CHECK(ask(server->admin_url().substr(7), get("/status")).status == 200);
}

TEST_CASE("clients that are not in the list of addresses are closed without a word") {
  FakeService service;
  const auto server =
      HttpServer::start({.admin = ListenAddress{}, .allow_addresses = {"192.0.2.0/24"}}, service)
          .value();
  HttpClient client(server->address());
  CHECK(client.closed());
  CHECK(client.unread().empty());
  CHECK(ask(server->admin_url().substr(7), get("/health")).status == 200);
}

TEST_CASE("web pages read answers only when their origin is allowed") {
  FakeService service;
  const auto closed = HttpServer::start({}, service).value();
  const auto open =
      HttpServer::start({.cors_origins = {"https://chat.example.com"}}, service).value();
  const std::string mine = "Origin: https://chat.example.com\r\n";
  const std::string other = "Origin: https://evil.example.com\r\n";
  const auto preflight = [](const std::string& origin) {
    return str_cat("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n", origin,
                   "Access-Control-Request-Method: POST\r\n",
                   "Access-Control-Request-Headers: authorization,x-stainless-os\r\n\r\n");
  };
  constexpr const char* kAllow = "access-control-allow-origin";
  CHECK(ask(closed->address(), preflight(mine)).status == 405);
  CHECK_FALSE(ask(closed->address(), get_with("/health", mine)).headers.contains(kAllow));
  CHECK(ask(open->address(), preflight(other)).status == 405);
  CHECK_FALSE(ask(open->address(), get_with("/health", other)).headers.contains(kAllow));
  const HttpAnswer asked = ask(open->address(), preflight(mine));
  CHECK(asked.status == 200);
  CHECK(asked.headers.at(kAllow) == "https://chat.example.com");
  CHECK(asked.headers.at("access-control-allow-headers") == "authorization,x-stainless-os");
  CHECK(ask(open->address(), get_with("/health", mine)).headers.at(kAllow) ==
        "https://chat.example.com");
  const HttpAnswer stream =
      ask(open->address(),
          post("/v1/completions", R"({"prompt":"a","max_tokens":2,"stream":true})", mine));
  CHECK(stream.headers.at(kAllow) == "https://chat.example.com");
  CHECK(stream.chunks.size() == 3);
}
