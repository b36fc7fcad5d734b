// SPDX-License-Identifier: Apache-2.0
#include "tools/http_client.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace brigade::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Listens on a free port of the loopback, takes one connection, keeps what it was sent, answers
/// fixed bytes, and (with `hang`) keeps the connection open until the client leaves.
class OneAnswer {
 public:
  OneAnswer(std::string answer, bool hang) : answer_(std::move(answer)), hang_(hang) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(listener_, 1) == 0);
    REQUIRE(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswer() {
    thread_.join();
    close(listener_);
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  [[nodiscard]] HttpClient client() const {
    return HttpClient({.host = "127.0.0.1", .port = std::to_string(port_)});
  }
  [[nodiscard]] const std::string& received() {
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([] {});
    return received_;
  }

 private:
  static bool readable(int fd) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&entry, 1, 5000) == 1;
  }
  void serve() {
    if (!readable(listener_)) return;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    char buffer[4096];
    while (received_.find("\r\n\r\n") == std::string::npos && readable(connection)) {
      const ssize_t size = read(connection, buffer, sizeof buffer);
      if (size <= 0) break;
      received_.append(buffer, static_cast<std::size_t>(size));
    }
    if (!answer_.empty()) {
      CHECK(send(connection, answer_.data(), answer_.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(answer_.size()));
    }
    while (hang_ && readable(connection) && read(connection, buffer, sizeof buffer) > 0) {
    }
    close(connection);
  }

  std::string answer_;
  bool hang_;
  int listener_ = -1;
  int port_ = 0;
  std::string received_;
  std::thread thread_;
};

constexpr const char* kChunked =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    "9\r\ndata: a\n\n\r\n9\r\ndata: b\n\n\r\n";

}  // namespace

TEST_CASE("addresses are read, IPv6 included, and what is none is refused") {
  struct Case {
    const char* text;
    const char* url;  ///< null: refused
  };
  for (const Case& c :
       {Case{"http://127.0.0.1:8000", "http://127.0.0.1:8000"}, Case{"host:80/", "http://host:80"},
        Case{"[::1]:9", "http://[::1]:9"}, Case{"http://[fe80::1]:1", "http://[fe80::1]:1"},
        Case{"", nullptr}, Case{"host", nullptr}, Case{"host:", nullptr}, Case{":80", nullptr},
        Case{"host:99999", nullptr}, Case{"host:8o", nullptr}, Case{"::1:80", nullptr},
        Case{"ftp://host:443", nullptr}, Case{"http://host:80/v1", nullptr}}) {
    CAPTURE(c.text);
    const auto address = parse_http_address(c.text);
    CHECK(address.ok() == (c.url != nullptr));
    if (address.ok() && c.url != nullptr) CHECK(address->url() == c.url);
  }
}

TEST_CASE("an answer comes with its status and body, and the request is whole") {
  OneAnswer server("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone", /*hang=*/false);
  const auto response = server.client().post("/v1/x", "{\"a\":1}", seconds(5));
  REQUIRE_MESSAGE(response.ok(), response.status().message());
  CHECK(response->status == 404);
  CHECK(response->body == "none");
  const std::string& request = server.received();
  CHECK(request.starts_with("POST /v1/x HTTP/1.1\r\n"));
  CHECK(request.find("Content-Length: 7\r\n") != std::string::npos);
}

TEST_CASE("a server that does not answer costs no more than the deadline") {
  OneAnswer server("", /*hang=*/true);
  const TimePoint start = Clock::now();
  const auto response = server.client().get("/status", milliseconds(100));
  REQUIRE(!response.ok());
  CHECK(response.status().code() == StatusCode::kDeadlineExceeded);
  CHECK(Clock::now() - start < seconds(3));
}

TEST_CASE("nothing listening, and an answer that breaks off, are kUnavailable") {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nshort", /*hang=*/false);
  CHECK(server.client().get("/", seconds(5)).status().code() == StatusCode::kUnavailable);
  // Port 1 of the loopback: reserved, and nothing listens.
  const HttpClient nobody({.host = "127.0.0.1", .port = "1"});
  CHECK(nobody.get("/", seconds(5)).status().code() == StatusCode::kUnavailable);
}

TEST_CASE("a stream is handed out as it comes and ends with its last chunk") {
  OneAnswer server(std::string(kChunked) + "0\r\n\r\n", /*hang=*/false);
  std::string bytes;
  const auto response = server.client().post_stream("/s", "{}", {}, [&](std::string_view piece) {
    bytes += piece;
    return true;
  });
  REQUIRE_MESSAGE(response.ok(), response.status().message());
  CHECK(bytes == "data: a\n\ndata: b\n\n");
}

TEST_CASE("a stream that is cut is not taken for one that ended") {
  OneAnswer server(kChunked, /*hang=*/false);
  const auto response =
      server.client().post_stream("/s", "{}", {}, [](std::string_view) { return true; });
  CHECK(response.status().code() == StatusCode::kUnavailable);
}

TEST_CASE("a stream that falls silent ends at the deadline, one that is left ends at once") {
  {
    OneAnswer server(kChunked, /*hang=*/true);
    HttpClient::StreamOptions options;
    options.silence_timeout = milliseconds(100);
    const auto response =
        server.client().post_stream("/s", "{}", options, [](std::string_view) { return true; });
    CHECK(response.status().code() == StatusCode::kDeadlineExceeded);
  }
  OneAnswer server(kChunked, /*hang=*/true);
  const auto response =
      server.client().post_stream("/s", "{}", {}, [](std::string_view) { return false; });
  CHECK(response.ok());
}

TEST_CASE("an error instead of a stream comes back as a response") {
  OneAnswer server("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}", /*hang=*/false);
  const auto response =
      server.client().post_stream("/s", "{}", {}, [](std::string_view) { return true; });
  REQUIRE(response.ok());
  CHECK(response->status == 429);
  CHECK(response->body == "{}");
}

}  // namespace brigade::tools
