// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/head.h"

#include <doctest/doctest.h>

#include <string>

#include "common/base/strings.h"

using namespace brigade;
using namespace brigade::router;

namespace {

struct Parsed {
  int status = 0;  ///< of the error; 200 when whole, 0 when more is needed
  RequestHead head;
  std::string body;
};

/// Parses in pieces of `piece` bytes, and checks the head as a server on loopback does.
Parsed parse(std::string_view text, std::size_t piece = 1 << 20) {
  RequestParser parser(/*max_header_bytes=*/1024, /*max_body_bytes=*/2048);
  Parsed out;
  std::string input;
  while (true) {
    const RequestParser::Step step = parser.put(input);
    input.erase(0, step.used);
    switch (step.event) {
      case RequestParser::Event::kError:
        out.status = parser.error().status;
        return out;
      case RequestParser::Event::kHead:
        out.head = parser.head();
        if (const auto error = check_head(out.head, {.allowed_hosts = {"mine"}})) {
          out.status = error->status;
          return out;
        }
        break;
      case RequestParser::Event::kDone:
        out.status = 200;
        out.body = parser.take_body();
        return out;
      case RequestParser::Event::kNeedMore:
        if (text.empty()) return out;
        input += text.substr(0, piece);
        text.remove_prefix(std::min(piece, text.size()));
    }
  }
}

std::string chunked(std::string_view body) {
  return str_cat("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
                 "Transfer-Encoding: chunked\r\n\r\n", body);
}

std::string with(std::string_view field) {
  return str_cat("GET /x HTTP/1.1\r\nHost: localhost\r\n", field, "\r\n\r\n");
}

std::string posted(std::string_view fields) {
  return str_cat("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n", fields,
                 "\r\n\r\n{}");
}

}  // namespace

TEST_CASE("a request is the same in pieces of any size") {
  const std::string plain =
      "POST /a?b=c HTTP/1.1\r\nHOST: localhost:80\r\ncontent-type: application/json\r\n"
      "Content-Length: 5\r\n\r\nhello";
  const std::string in_chunks = chunked("2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: 1\r\n\r\n");
  for (const std::size_t piece : {1, 2, 3, 7, 1000}) {
    CAPTURE(piece);
    const Parsed first = parse(plain, piece);
    CHECK(first.status == 200);
    CHECK(first.head.method == "POST");
    CHECK(path_of(first.head.target) == "/a");
    CHECK(*first.head.find("host") == "localhost:80");
    CHECK(first.body == "hello");
    const Parsed second = parse(in_chunks, piece);
    CHECK(second.status == 200);
    CHECK(second.body == "hello");
  }
}

TEST_CASE("a last chunk that comes byte by byte is no fault") {
  CHECK(parse(chunked("0\r\n\r\n"), 1).status == 200);
  CHECK(parse(chunked("5\r\nhello\r\n0\r\n\r\n"), 1).body == "hello");
}

TEST_CASE("sizes are bounded while they are read") {
  CHECK(parse(with("A: " + std::string(2000, 'a'))).status == 431);
  CHECK(parse("GET /" + std::string(2000, 'a')).status == 431);
  std::string many = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 101; ++i)
    many += "a:\r\n";
  CHECK(parse(many + "\r\n").status == 431);
  CHECK(parse("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n").status ==
        413);
  CHECK(parse(chunked("400\r\n" + std::string(1024, 'a') + "\r\n401\r\n")).status == 413);
  CHECK(parse(chunked("1;" + std::string(200, 'x') + "\r\na\r\n")).status == 400);
  CHECK(parse(chunked("1;" + std::string(5000, 'x')), 64).status == 431);
  CHECK(parse(chunked("0\r\n" + std::string(5000, 'x')), 64).status == 431);
}

TEST_CASE("chunk sizes that are none are refused") {
  for (const std::string body : {"ffffffffffffffff", "fffffffffffffffff", "-1", " 5", "5 ", "0x5",
                                 "", "5;a=b c", "5\nhello\n", "5,"}) {
    CAPTURE(body);
    const int status = parse(chunked(body + "\r\nhello\r\n0\r\n\r\n")).status;
    CHECK((status == 400 || status == 413));
  }
  CHECK(parse(chunked("5\r\nhelloX\r\n0\r\n\r\n")).status == 400);
}

TEST_CASE("framing that can be read in two ways is refused") {
  for (const std::string fields :
       {"Content-Length: 5\r\nContent-Length: 5", "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 5", "Content-Length: +5", "Content-Length: 0x5", "Content-Length: -1",
        "Content-Length: 99999999999999999999",
        "Content-Length:", "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5", "Transfer-Encoding: gzip",
        "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked", "Bad Name: x", ": x", "NoColon"}) {
    CAPTURE(fields);
    CHECK(parse(with(fields)).status == 400);
  }
  CHECK(parse("POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status == 400);
}

TEST_CASE("Host is one clean name, and on loopback a local one") {
  const auto host = [](std::string_view value) {
    return parse(str_cat("GET / HTTP/1.1\r\nHost: ", value, "\r\n\r\n")).status;
  };
  for (const std::string good : {"localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:80",
                                 "a.localhost", "mine:80", "10.0.0.7"}) {
    CAPTURE(good);
    CHECK(host(good) == 200);
  }
  for (const std::string bad : {"a/b", "a?b", "a#b", "a@b", "a\\b", "a b"}) {
    CAPTURE(bad);
    CHECK(host(bad) == 400);
  }
  for (const std::string foreign :
       {"evil.example", "evil.example:80", "localhost.evil.example", ""}) {
    CAPTURE(foreign);
    CHECK(host(foreign) == 403);
  }
  CHECK(parse("GET / HTTP/1.1\r\n\r\n").status == 400);
  CHECK(parse("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n").status == 400);
  CHECK(parse("GET / HTTP/1.0\r\n\r\n").status == 200);
}

TEST_CASE("a body is JSON, and not compressed") {
  CHECK(parse(posted("Content-Type: application/json")).status == 200);
  CHECK(parse(posted("Content-Type: Application/JSON; charset=utf-8")).status == 200);
  CHECK(parse(posted("X: y")).status == 415);
  CHECK(parse(posted("Content-Type: text/plain")).status == 415);
  CHECK(parse(posted("Content-Type: application/json\r\nContent-Type: text/plain")).status == 415);
  CHECK(parse(posted("Content-Type: application/json\r\nContent-Encoding: gzip")).status == 415);
  CHECK(parse(posted("Content-Type: application/json\r\nContent-Encoding: identity")).status ==
        200);
  CHECK(parse(posted("Content-Type: application/json\r\nExpect: a-party")).status == 417);
}

TEST_CASE("what is not HTTP/1 is refused") {
  for (const std::string text :
       {"\x16\x03\x01\x02\x00\x01\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / HTTP/1.2\r\n\r\n",
        "GET /\r\n\r\n", "get\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n"}) {
    CAPTURE(text);
    CHECK(parse(text).status == 400);
  }
  CHECK(parse("GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 400);
}

TEST_CASE("a request id is echoed only when it is harmless") {
  const auto id = [](std::string_view value) {
    return request_id_of(parse(with(str_cat("x-request-id: ", value))).head);
  };
  CHECK(id("bench-1f-7") == "bench-1f-7");
  CHECK_FALSE(id("").has_value());
  CHECK_FALSE(id("a b").has_value());
  CHECK_FALSE(id("a\xff").has_value());
  CHECK_FALSE(id(std::string(129, 'a')).has_value());
}
