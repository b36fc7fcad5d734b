// SPDX-License-Identifier: Apache-2.0
// Every path: what it answers, and what it answers to the wrong method, body or moment.
#include "router/api/http/routes.h"

#include <doctest/doctest.h>

#include <string>

#include "common/base/strings.h"
#include "router/api/http/server.h"
#include "tests/support/fake_service.h"
#include "tests/support/http_client.h"

using namespace brigade;
using namespace brigade::router;
using namespace brigade::testing;

namespace {

struct Door {
  explicit Door(std::size_t num_models = 1) : service(num_models) {}
  FakeService service;
  std::unique_ptr<HttpServer> server = HttpServer::start({.version = "1.2"}, service).value();

  HttpAnswer operator()(std::string_view request) { return ask(server->address(), request); }
};

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  INFO(part);
  return text.find(part) != std::string::npos;
}

const std::string kComplete = post("/v1/completions", R"({"prompt":"a","max_tokens":1})");

}  // namespace

TEST_CASE("models are listed, and found by name") {
  Door door(2);
  const HttpAnswer list = door(get("/v1/models"));
  CHECK(list.status == 200);
  CHECK(list.body.starts_with(
      R"({"object":"list","data":[{"id":"fake","object":"model","created":)"));
  CHECK(has(list.body, R"("id":"fake-2")"));
  CHECK(has(list.body, R"("max_model_len":512)"));
  CHECK(door(get("/v1/models/fake-2")).body.starts_with(R"({"id":"fake-2")"));
  const HttpAnswer missing = door(get("/v1/models/nobody"));
  CHECK(missing.status == 404);
  CHECK(has(missing.body, R"("code":"model_not_found")"));
}

TEST_CASE("a request names its model, or there is only one") {
  Door door(2);
  CHECK(door(post("/v1/completions", R"({"model":"fake-2","prompt":"a"})")).status == 200);
  CHECK(door.service.submitted().at(0).model == "fake-2");
  const HttpAnswer ambiguous = door(post("/v1/completions", R"({"prompt":"a"})"));
  CHECK(ambiguous.status == 400);
  CHECK(has(ambiguous.body, R"("param":"model")"));
  for (const char* name : {"nobody", "../../etc/passwd", "a/b\\u0000"}) {
    const HttpAnswer unknown =
        door(post("/v1/completions", str_cat(R"({"prompt":"a","model":")", name, R"("})")));
    CHECK(unknown.status == 404);
    CHECK(unknown.reason == "Not Found");
    CHECK(has(unknown.body, R"("code":"model_not_found")"));
  }
}

TEST_CASE("tokenize and detokenize answer as vLLM does") {
  Door door;
  CHECK(door(post("/tokenize", R"({"model":"fake","prompt":"ab","add_special_tokens":false})"))
            .body == R"({"count":2,"max_model_len":512,"tokens":[97,98],"token_strs":null})");
  CHECK(door(post("/tokenize", R"({"prompt":"a<s>","return_token_strs":true})")).body ==
        R"({"count":2,"max_model_len":512,"tokens":[97,256],"token_strs":["a","<s>"]})");
  CHECK(has(door(post("/tokenize", R"({"messages":[{"role":"user","content":"<s>"}]})")).body,
            "\"tokens\":[257,"));
  CHECK(door(post("/tokenize", R"({"prompt":""})")).body ==
        R"({"count":0,"max_model_len":512,"tokens":[],"token_strs":null})");
  CHECK(door(post("/detokenize", R"({"model":"fake","tokens":[257,97,255]})")).body ==
        "{\"prompt\":\"<|im_start|>a\uFFFD\"}");
  CHECK(has(door(post("/tokenize", "{}")).body, R"("param":"prompt")"));
  CHECK(has(door(post("/detokenize", R"({"tokens":[259]})")).body, R"("param":"tokens")"));
  CHECK(door(post("/detokenize", R"({"tokens":[1],"model":"nobody"})")).status == 404);
}

TEST_CASE("life does not depend on replicas, readiness does") {
  Door door;
  for (const char* path : {"/health", "/livez", "/readyz"})
    CHECK(door(get(path)).status == 200);
  door.service.is_ready = false;
  CHECK(door(get("/health")).status == 200);
  CHECK(door(get("/livez")).status == 200);
  const HttpAnswer ready = door(get("/readyz"));
  CHECK(ready.status == 503);
  CHECK(ready.headers.at("retry-after") == "1");
}

TEST_CASE("a router that shuts down takes no generation") {
  Door door;
  door.service.is_accepting = false;
  CHECK(door(kComplete).status == 503);
  CHECK(door(get("/readyz")).status == 503);
  CHECK(door(get("/health")).status == 200);
  CHECK(door.service.submitted().empty());
}

TEST_CASE("a full tokenizer pool is answered at once") {
  Door door;
  door.service.pool_is_full = true;
  for (const std::string& request : {kComplete, post("/tokenize", R"({"prompt":"a"})")}) {
    const HttpAnswer answer = door(request);
    CHECK(answer.status == 503);
    CHECK(answer.headers.at("retry-after") == "1");
  }
}

TEST_CASE("status is the router's, as brigade status prints it") {
  Door door;
  const HttpAnswer answer = door(get("/status"));
  CHECK(answer.status == 200);
  CHECK(answer.body.starts_with(
      R"({"replicas":[{"id":1,"model":"fake","state":"ready","epoch":0,"running":0,"steps":0,)"
      R"("kv_blocks":{"total":10,"used":0,"cached":0},"ranks":[{"worker":"w0","pid":42,"host":"",)"
      R"("state":"ready","tp_rank":0,"pp_stage":0,"layers":[0,15],)"));
  CHECK(has(answer.body,
            R"("queue":{"requests":3,"tokens":0,"buckets":[{"max_tokens":128,"requests":3}]})"));
  CHECK(answer.body.ends_with(R"("preempted":0,"failed_over":0})"));
  CHECK(door(get("/version")).body == "{\"version\":\"1.2\"}");
}

TEST_CASE("drain goes to the router, and its refusal comes back") {
  Door door;
  const HttpAnswer drained = door(post("/drain", R"({"replica":1})"));
  CHECK(drained.status == 200);
  CHECK(drained.body == R"({"replica":1,"state":"draining"})");
  CHECK(door.service.drained() == std::vector<ReplicaId>{1});
  CHECK(door(post("/drain", R"({"replica":2})")).status == 404);
  for (const char* body : {"{}", R"({"replica":-1})", R"({"replica":"1"})", "[]"}) {
    CHECK(door(post("/drain", body)).status == 400);
  }
  CHECK(door.service.drained().size() == 1);
}

TEST_CASE("other paths are 404 and other methods 405, in JSON") {
  Door door;
  for (const char* path : {"/", "//v1/models", "/V1/models", "/v1/../status", "/v1/%6dodels",
                           "/v1/models;x", "/tokenizer_info", "/v1/completions/"}) {
    CAPTURE(path);
    const HttpAnswer answer = door(get(path));
    CHECK(answer.status == 404);
    CHECK(has(answer.body, R"("type":"not_found_error")"));
  }
  for (const char* method : {"DELETE", "PUT", "PATCH", "OPTIONS", "GET", "TRACE"}) {
    CAPTURE(method);
    const HttpAnswer answer = door(get("/v1/completions", method));
    CHECK(answer.status == 405);
    CHECK(answer.headers.at("allow") == "POST");
    CHECK_FALSE(answer.headers.contains("access-control-allow-origin"));
  }
  CHECK(door(post("/health", "{}")).headers.at("allow") == "GET, HEAD");
  CHECK(door(get("/health?full=1")).status == 200);
}

TEST_CASE("HEAD is GET without the body") {
  Door door;
  HttpClient client(door.server->address());
  client.send(get("/health", "HEAD") + get("/health"));
  const HttpAnswer head = client.receive(std::chrono::seconds(3), /*to_head=*/true);
  CHECK(head.status == 200);
  CHECK(head.headers.at("content-length") == "15");
  const HttpAnswer next = client.receive();
  CHECK(next.status == 200);
  CHECK(next.body == R"({"status":"ok"})");
}

TEST_CASE("the client's request id comes back, or one of ours") {
  Door door;
  const std::string request = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
  CHECK(door(request + "x-request-id: r-1\r\n\r\n").headers.at("x-request-id") == "r-1");
  CHECK(door(request + "\r\n").headers.at("x-request-id").starts_with("req-"));
  CHECK(door(post("/v1/completions", "{}", "X-Request-ID: r-2\r\n")).headers.at("x-request-id") ==
        "r-2");
}

TEST_CASE("a refusal says whether compute was spent on the request") {
  Door door;
  struct Case {
    Status status;
    bool computed;
    const char* reason;
  };
  const Case cases[] = {
      {resource_exhausted("full"), false, "rejected-saturated"},
      {deadline_exceeded("late"), false, "rejected-ttl-expired"},
      {deadline_exceeded("late"), true, "evicted-ttl-expired"},
      {unavailable("no replica"), false, "rejected-unavailable"},
      {unavailable("lost"), true, "evicted-unavailable"},
      {invalid_argument("no"), false, nullptr},
  };
  for (const Case& expected : cases) {
    const wire::DropReason reason = wire::drop_reason_of(expected.status.code(), expected.computed);
    CHECK(wire::compute_spent(reason) == expected.computed);
    door.service.set_script([&](const Request&) {
      std::vector<Output> outputs = refuse(expected.status);
      outputs.back().drop_reason = reason;
      return outputs;
    });
    const HttpAnswer answer = door(kComplete);
    const bool has_reason = expected.reason != nullptr;
    CHECK(answer.headers.contains("x-request-dropped-reason") == has_reason);
    CHECK(has(answer.body, "\"reason\"") == has_reason);
    if (!has_reason) continue;
    CHECK(answer.headers.at("x-request-dropped-reason") == expected.reason);
    CHECK(has(answer.body, str_cat("\"reason\":\"", expected.reason, "\"")));
  }
}

TEST_CASE("the router's refusals have their status, type and Retry-After") {
  Door door;
  struct Case {
    Status status;
    std::uint32_t retry_after_s;
    int http;
    const char* reason;
    const char* retry;
  };
  const Case cases[] = {
      {resource_exhausted("full"), 7, 429, "Too Many Requests", "7"},
      {resource_exhausted("full"), 0, 429, "Too Many Requests", "1"},
      {unavailable("no replica"), 500, 503, "Service Unavailable", "60"},
      {deadline_exceeded("late"), 0, 504, "Gateway Timeout", nullptr},
      {invalid_argument("over the maximum context length"), 0, 400, "Bad Request", nullptr},
      {internal_error("bug"), 9, 500, "Internal Server Error", nullptr},
  };
  for (const Case& expected : cases) {
    CAPTURE(expected.http);
    door.service.set_script(
        [&](const Request&) { return refuse(expected.status, expected.retry_after_s); });
    for (const char* stream : {"false", "true"}) {
      const HttpAnswer answer =
          door(post("/v1/completions", str_cat(R"({"prompt":"a","n":2,"stream":)", stream, "}")));
      CHECK(answer.status == expected.http);
      CHECK(answer.reason == expected.reason);
      CHECK(answer.headers.contains("retry-after") == (expected.retry != nullptr));
      if (expected.retry != nullptr) CHECK(answer.headers.at("retry-after") == expected.retry);
      CHECK(answer.headers.contains("x-should-retry") == (expected.http == 504));
      CHECK(has(answer.body, "{\"error\":{\"message\":\"" + expected.status.message() + "\""));
      CHECK(has(answer.body, "\"param\":null"));
    }
  }
  door.service.set_script(
      [](const Request&) { return refuse(invalid_argument("context length")); });
  CHECK(has(door(kComplete).body, "context_length_exceeded"));
}

TEST_CASE("ping answers, and what is not served yet says what to use") {
  Door door;
  CHECK(door(get("/ping")).status == 200);
  for (const char* path : {"/v1/responses", "/v1/embeddings"}) {
    const HttpAnswer answer = door(post(path, R"({"model":"fake","input":"hi"})"));
    CHECK(answer.status == 404);
    CHECK(has(answer.body, R"("code":"unsupported_endpoint")"));
    CHECK(has(answer.body, "/v1/chat/completions"));
  }
}
