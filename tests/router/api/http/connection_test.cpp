// SPDX-License-Identifier: Apache-2.0
// The door against clients that are many, slow, hostile or broken.
#include "router/api/http/connection.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "router/api/http/server.h"
#include "tests/support/fake_service.h"
#include "tests/support/http_client.h"

using namespace brigade;
using namespace brigade::router;
using namespace brigade::testing;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

struct Door {
  explicit Door(HttpOptions options = {})
      : server(HttpServer::start(std::move(options), service).value()) {}
  FakeService service;
  std::unique_ptr<HttpServer> server;

  /// It still serves others.
  bool lives() { return ask(server->address(), get("/health")).status == 200; }
};

const std::string kStream =
    post("/v1/completions", R"({"prompt":"a","max_tokens":2,"stream":true})");

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("only loopback is bound unless allowed expressly") {
  FakeService service;
  for (const char* host : {"0.0.0.0", "::", "192.0.2.1"}) {
    const auto refused = HttpServer::start({.at = {.host = host}}, service);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status().code() == StatusCode::kPermissionDenied);
    CHECK(refused.status().message().find("allow_remote_http") != std::string::npos);
  }
  CHECK(HttpServer::start({.at = {.host = "0.0.0.0"}, .allow_remote = true}, service).ok());
  CHECK(HttpServer::start({.at = {.host = "localhost"}}, service).ok());
  CHECK(HttpServer::start({.at = {.host = "nonsense!"}}, service).status().code() ==
        StatusCode::kInvalidArgument);
  const auto first = HttpServer::start({}, service);
  const std::string address = first.value()->address();
  CHECK(address.starts_with("127.0.0.1:"));
  const int port = std::stoi(address.substr(address.find(':') + 1));
  CHECK(port > 0);
  const auto second =
      HttpServer::start({.at = {.port = static_cast<std::uint16_t>(port)}}, service);
  CHECK(second.status().code() == StatusCode::kUnavailable);
}

TEST_CASE("a connection goes on after answers and streams, unless the client says close") {
  Door door;
  HttpClient client(door.server->address());
  for (int i = 0; i < 3; ++i) {
    client.send(kStream);
    const HttpAnswer stream = client.receive();
    CHECK(stream.complete);
    CHECK(stream.chunks.size() == 3);
    client.send(get("/health"));
    CHECK(client.receive().status == 200);
  }
  client.send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  CHECK(client.receive().headers.at("connection") == "close");
  CHECK(client.closed());
}

TEST_CASE("HTTP/1.0 gets a stream that ends with the connection") {
  Door door;
  HttpClient client(door.server->address());
  std::string request = kStream;
  request.replace(request.find("1.1"), 3, "1.0");
  client.send(request);
  const HttpAnswer answer = client.receive();
  CHECK(answer.status == 200);
  CHECK_FALSE(answer.headers.contains("transfer-encoding"));
  CHECK(answer.body.starts_with("data: {"));
  CHECK(answer.body.ends_with("data: [DONE]\n\n"));
}

TEST_CASE("requests sent ahead are answered in order") {
  Door door;
  HttpClient client(door.server->address());
  std::string ahead;
  for (int i = 0; i < 200; ++i) {
    ahead += "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: " + std::to_string(i) +
             "\r\n\r\n";
  }
  client.send(kStream + ahead + "\r\n\r\n" + kStream);
  CHECK(client.receive().chunks.size() == 3);
  for (int i = 0; i < 200; ++i) {
    CHECK(client.receive().headers.at("x-request-id") == std::to_string(i));
  }
  CHECK(client.receive().chunks.size() == 3);
}

TEST_CASE("a client that sends without end while its answer is in work is cut") {
  Door door;
  door.service.hold(true);
  HttpClient client(door.server->address());
  client.send(kStream);
  REQUIRE(door.service.wait_for_submitted(1));
  client.send(std::string(200'000, 'x'));
  CHECK(door.service.wait_for_cancelled(1));
  door.service.hold(false);
  CHECK(door.lives());
}

TEST_CASE("a body of 100 MB is refused after its header") {
  Door door;
  HttpClient client(door.server->address());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 104857600\r\n\r\n");
  CHECK(client.receive().status == 413);
  HttpClient sender(door.server->address());
  sender.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 104857600\r\n\r\n");
  const std::string part(1 << 20, 'x');
  for (int i = 0; i < 100 && sender.send(part); ++i) {
  }
  CHECK(sender.receive().status == 413);
  CHECK(door.lives());
}

TEST_CASE("bodies in chunks are bounded too, and taken when they are small") {
  Door door({.max_body_bytes = 10'000});
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  const std::string body = R"({"prompt":"a","max_tokens":1})";
  std::string by_one;
  for (const char c : body)
    by_one += str_cat("1\r\n", std::string(1, c), "\r\n");
  CHECK(ask(door.server->address(), head + by_one + "0\r\n\r\n").status == 200);
  std::string bomb;
  for (int i = 0; i < 20'000; ++i)
    bomb += "1\r\n[\r\n";
  CHECK(ask(door.server->address(), head + bomb).status == 413);
  CHECK(ask(door.server->address(), head + "ffffffffffffffff\r\n").status == 413);
  CHECK(ask(door.server->address(), head + "1;" + std::string(1000, 'e') + "\r\na\r\n").status ==
        400);
  CHECK(door.service.submitted().size() == 1);
}

TEST_CASE("a client that asks first is told to go on, or not") {
  Door door;
  const std::string body = R"({"prompt":"a","max_tokens":1})";
  HttpClient client(door.server->address());
  client.send(str_cat("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n",
                      "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ",
                      body.size(), "\r\n\r\n"));
  REQUIRE(client.receive_until("HTTP/1.1 100 Continue\r\n\r\n"));
  CHECK(client.receive(seconds(3), /*to_head=*/true).status == 100);
  client.send(body);
  CHECK(client.receive().status == 200);
  CHECK(ask(door.server->address(),
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
            .status == 413);
}

TEST_CASE("bodies being read are bounded over all connections") {
  Door door({.max_total_body_bytes = 1000});
  const std::string head =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 900\r\n\r\n";
  HttpClient first(door.server->address());
  first.send(head);
  CHECK(door.lives());  // the first has been seen
  CHECK(ask(door.server->address(), head).status == 503);
  first.send("{\"prompt\":\"" + std::string(900 - 13, 'a') + "\"}");
  CHECK(first.receive().status == 200);
  CHECK(ask(door.server->address(), post("/tokenize", R"({"prompt":"a"})")).status == 200);
}

TEST_CASE("a header without end is cut at its limit") {
  Door door;
  const std::string request = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
  CHECK(ask(door.server->address(), request + "A: " + std::string(20'000, 'a')).status == 431);
  std::string many = request;
  for (int i = 0; i < 200; ++i)
    many += "a: b\r\n";
  CHECK(ask(door.server->address(), many + "\r\n").status == 431);
  HttpClient endless(door.server->address());
  bool open = endless.send(request);
  for (int i = 0; i < 2000 && open; ++i)
    open = endless.send(std::string(10'000, 'a'));
  CHECK(endless.receive().status == 431);
  CHECK(door.lives());
}

TEST_CASE("slow heads, slow bodies and idle connections end at their time") {
  Door door({.header_timeout = milliseconds(80),
             .body_window = milliseconds(80),
             .min_body_rate = 100'000,
             .idle_timeout = milliseconds(150),
             .linger_timeout = milliseconds(50)});
  HttpClient silent(door.server->address());
  HttpClient slow_head(door.server->address());
  HttpClient slow_body(door.server->address());
  HttpClient kept(door.server->address());
  slow_head.send("GET /health HTTP/1.1\r\nHo");
  slow_body.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 1000\r\n\r\n{");
  kept.send(get("/health"));
  CHECK(kept.receive().status == 200);
  CHECK(silent.closed());
  const HttpAnswer head = slow_head.receive();
  CHECK(head.status == 408);
  CHECK(head.reason == "Request Timeout");
  CHECK(slow_head.closed());
  CHECK(slow_body.receive().status == 408);
  CHECK(kept.closed());
}

TEST_CASE("a slow body that keeps its rate is taken") {
  // Longer in all than one window; a pause of a whole window, which a busy machine may make, is not
  // part of the plan.
  Door door({.body_window = milliseconds(400), .min_body_rate = 10});
  HttpClient client(door.server->address());
  client.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 200\r\n\r\n");
  const std::string body = "{\"prompt\":\"" + std::string(200 - 13, 'a') + "\"}";
  for (std::size_t i = 0; i < body.size(); i += 20) {
    client.send(body.substr(i, 20));
    std::this_thread::sleep_for(milliseconds(60));
  }
  CHECK(client.receive().status == 200);
}

TEST_CASE("garbage is answered with 400 and closed, HTTP/2 is closed without a word") {
  Door door;
  for (const std::string& garbage :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15),
        std::string("hello\r\n\r\n"), std::string(100, '\0'), std::string("\xff\xfe\r\n\r\n"),
        std::string("GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n")}) {
    HttpClient client(door.server->address());
    client.send(garbage);
    const HttpAnswer answer = client.receive();
    CHECK(answer.status == 400);
    CHECK(answer.headers.at("connection") == "close");
    CHECK(has(answer.body, R"({"error":{"message":)"));
    CHECK(client.closed());
  }
  for (const char* preface : {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI "}) {
    HttpClient client(door.server->address());
    client.send(preface);
    CHECK(client.closed());
    CHECK(client.unread().empty());
  }
  CHECK(door.lives());
}

TEST_CASE("the body of a GET is never taken for a request") {
  Door door;
  HttpClient client(door.server->address());
  const std::string hidden = get("/v1/models");
  client.send(str_cat("GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: ", hidden.size(),
                      "\r\n\r\n", hidden, get("/version")));
  CHECK(has(client.receive().body, "ok"));
  CHECK(has(client.receive().body, "version"));
}

TEST_CASE("broken bodies are answered, and the connection goes on") {
  Door door;
  HttpClient client(door.server->address());
  for (const std::string& body :
       {std::string("{"), std::string("{\"prompt\":\"\xff\"}"), std::string(10'000, '['),
        std::string("{\"prompt\":\"a\",\"temperature\":NaN}"), std::string("[]"), std::string()}) {
    client.send(post("/v1/completions", body));
    const HttpAnswer answer = client.receive();
    CHECK(answer.status == 400);
    CHECK(has(answer.body, R"("type":"invalid_request_error")"));
  }
  client.send(get("/health"));
  CHECK(client.receive().status == 200);
}

TEST_CASE("connections above the limit are told so, and the place comes back") {
  Door door({.max_connections = 2});
  auto first = std::make_unique<HttpClient>(door.server->address());
  HttpClient second(door.server->address());
  first->send(get("/health"));
  second.send(get("/health"));
  CHECK(first->receive().status == 200);
  CHECK(second.receive().status == 200);
  HttpClient third(door.server->address());
  const HttpAnswer refused = third.receive();
  CHECK(refused.status == 503);
  CHECK(refused.headers.at("retry-after") == "1");
  CHECK(third.closed());
  first.reset();
  bool served = false;
  for (int i = 0; i < 100 && !served; ++i)
    served = door.lives();
  CHECK(served);
}

TEST_CASE("500 streams at once all end whole") {
  Door door;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(std::make_unique<HttpClient>(door.server->address()));
    REQUIRE(clients.back()->send(kStream));
  }
  int whole = 0;
  for (const auto& client : clients) {
    const HttpAnswer answer = client->receive(seconds(20));
    if (answer.complete && answer.chunks.size() == 3) ++whole;
  }
  CHECK(whole == 500);
}
