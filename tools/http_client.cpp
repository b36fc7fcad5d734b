// SPDX-License-Identifier: Apache-2.0
#include "tools/http_client.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <csignal>
#include <optional>

#include "common/base/strings.h"
#include "tools/tls_client.h"

namespace brigade::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr std::uint64_t kMaxBody = 64U << 20;

/// One connection. Each operation is started asynchronously and waited for until its deadline:
/// Beast's own time-outs cover neither the resolver nor synchronous calls.
class Connection {
 public:
  explicit Connection(const HttpAddress& address)
      : address_(address), stream_(io_, context_), socket_(stream_.next_layer()) {}

  void stop_on_interrupt() {
    signals_.emplace(io_, SIGINT);
    signals_->async_wait([this](error_code error, int) { interrupted_ = !error; });
  }

  Status connect(Duration timeout) {
    const TimePoint deadline = Clock::now() + timeout;
    asio::ip::tcp::resolver resolver(io_);
    asio::ip::tcp::resolver::results_type endpoints;
    RETURN_IF_ERROR(wait(deadline, "resolve", [&](auto done) {
      resolver.async_resolve(address_.host, address_.port, [&, done](error_code error, auto found) {
        endpoints = std::move(found);
        done(error);
      });
    }));
    RETURN_IF_ERROR(wait(deadline, "connect", [&](auto done) {
      asio::async_connect(socket_, endpoints,
                          [done](error_code error, const auto&) { done(error); });
    }));
    if (!address_.tls) return {};
    RETURN_IF_ERROR(prepare_tls());
    return wait(deadline, "TLS handshake",
                [&](auto done) { stream_.async_handshake(asio::ssl::stream_base::client, done); });
  }

  Status send(http::verb verb, const std::string& path, const std::string& body, Duration timeout) {
    http::request<http::string_body> request(verb, path, 11);
    request.set(http::field::host, address_.host + ":" + address_.port);
    request.set(http::field::user_agent, "brigade");
    request.set(http::field::connection, "close");
    if (verb == http::verb::post) request.set(http::field::content_type, "application/json");
    request.body() = body;
    request.prepare_payload();
    if (!address_.api_key.empty()) {
      request.set(http::field::authorization, "Bearer " + address_.api_key);
    }
    return wait(Clock::now() + timeout, "send", [&](auto done) {
      on_stream([&](auto& stream) {
        http::async_write(stream, request, [done](error_code error, std::size_t) { done(error); });
      });
    });
  }

  Result<HttpResponse> receive(Duration timeout) {
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMaxBody);
    RETURN_IF_ERROR(wait(Clock::now() + timeout, "receive", [&](auto done) {
      on_stream([&](auto& stream) {
        http::async_read(stream, buffer_, parser,
                         [done](error_code error, std::size_t) { done(error); });
      });
    }));
    return HttpResponse{.status = parser.get().result_int(), .body = parser.get().body()};
  }

  Result<HttpResponse> receive_stream(Duration silence,
                                      const std::function<bool(std::string_view)>& on_piece) {
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    RETURN_IF_ERROR(wait(Clock::now() + silence, "receive", [&](auto done) {
      on_stream([&](auto& stream) {
        http::async_read_header(stream, buffer_, parser,
                                [done](error_code error, std::size_t) { done(error); });
      });
    }));
    HttpResponse response{.status = parser.get().result_int(), .body = {}};
    const bool streaming = response.status == 200;
    std::array<char, 16384> piece{};
    while (!parser.is_done()) {
      parser.get().body().data = piece.data();
      parser.get().body().size = piece.size();
      RETURN_IF_ERROR(wait(Clock::now() + silence, "receive", [&](auto done) {
        on_stream([&](auto& stream) {
          http::async_read_some(stream, buffer_, parser, [done](error_code error, std::size_t) {
            done(error == http::error::need_buffer ? error_code() : error);
          });
        });
      }));
      const std::string_view bytes(piece.data(), piece.size() - parser.get().body().size);
      if (streaming) {
        if (!bytes.empty() && !on_piece(bytes)) return response;
      } else {
        if (response.body.size() + bytes.size() > kMaxBody) {
          return resource_exhausted(str_cat(address_.url(), " answers with more than 64 MiB"));
        }
        response.body += bytes;
      }
    }
    return response;
  }

 private:
  template <typename Use>
  void on_stream(Use use) {
    if (address_.tls) {
      use(stream_);
    } else {
      use(socket_);
    }
  }

  Status prepare_tls() {
    RETURN_IF_ERROR(load_issuers(context_, address_));
    expect_host(stream_, address_);
    return {};
  }

  template <typename Start>
  Status wait(TimePoint deadline, std::string_view what, Start start) {
    bool finished = false;
    error_code result;
    start([&](error_code error) {
      finished = true;
      result = error;
    });
    io_.restart();
    while (!finished && !interrupted_ && io_.run_one_until(deadline) != 0) {
    }
    const bool expired = !finished;
    if (!finished) {
      // The handlers point into this frame: they must have run before it goes.
      error_code ignored;
      socket_.close(ignored);
      if (signals_) signals_->cancel(ignored);
      io_.stop();
      io_.restart();
      while (!finished && io_.run_one_for(std::chrono::seconds(1)) != 0) {
      }
    }
    if (interrupted_) return cancelled("interrupted");
    if (expired) {
      return deadline_exceeded(str_cat(address_.url(), ": no answer in time (", what, ")"));
    }
    if (result) return unavailable(str_cat(address_.url(), ": ", what, ": ", result.message()));
    return {};
  }

  HttpAddress address_;
  asio::io_context io_{1};
  asio::ssl::context context_{asio::ssl::context::tls_client};
  asio::ssl::stream<asio::ip::tcp::socket> stream_;  ///< around socket_, used with TLS
  asio::ip::tcp::socket& socket_;
  std::optional<asio::signal_set> signals_;
  bool interrupted_ = false;
  beast::flat_buffer buffer_;
};

Result<HttpResponse> call(const HttpAddress& address, http::verb verb, const std::string& path,
                          const std::string& body, Duration timeout) {
  Connection connection(address);
  RETURN_IF_ERROR(connection.connect(timeout));
  RETURN_IF_ERROR(connection.send(verb, path, body, timeout));
  return connection.receive(timeout);
}

}  // namespace

std::string HttpAddress::url() const {
  const bool v6 = host.find(':') != std::string::npos;
  return str_cat(tls ? "https://" : "http://", v6 ? "[" : "", host, v6 ? "]" : "", ":", port);
}

Result<HttpAddress> parse_http_address(std::string_view text) {
  const auto refuse = [&] {
    return invalid_argument(
        str_cat("expected http://HOST:PORT or https://HOST:PORT, got ", quoted(text)));
  };
  std::string_view rest = text;
  const bool tls = rest.starts_with("https://");
  if (tls) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return refuse();
  std::string_view host = rest.substr(0, colon);
  const std::string_view port = rest.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refuse();
  }
  const bool digits = port.find_first_not_of("0123456789") == std::string_view::npos;
  const bool in_range =
      !port.empty() && port.size() <= 5 && digits && std::stoi(std::string(port)) <= 65535;
  if (host.empty() || host.find('/') != std::string_view::npos || !in_range) return refuse();
  return HttpAddress{.host = std::string(host), .port = std::string(port), .tls = tls};
}

Result<HttpResponse> HttpClient::get(const std::string& path, Duration timeout) const {
  return call(address_, http::verb::get, path, "", timeout);
}

Result<HttpResponse> HttpClient::post(const std::string& path, const std::string& json,
                                      Duration timeout) const {
  return call(address_, http::verb::post, path, json, timeout);
}

Result<HttpResponse> HttpClient::post_stream(
    const std::string& path, const std::string& json, const StreamOptions& options,
    const std::function<bool(std::string_view)>& on_piece) const {
  Connection connection(address_);
  if (options.stop_on_interrupt) connection.stop_on_interrupt();
  RETURN_IF_ERROR(connection.connect(options.connect_timeout));
  RETURN_IF_ERROR(connection.send(http::verb::post, path, json, options.connect_timeout));
  return connection.receive_stream(options.silence_timeout, on_piece);
}

}  // namespace brigade::tools
