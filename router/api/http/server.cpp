// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>
#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "router/api/http/connection.h"
#include "router/api/http/context.h"

namespace brigade::router {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Connections above the limit that are told so at one time; further ones are closed without a
/// word.
constexpr std::size_t kMaxRefusals = 64;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
/// For the last errors to reach their clients at shutdown.
constexpr Duration kStopGrace = std::chrono::milliseconds(300);

Result<tcp::endpoint> endpoint_of(const HttpOptions& options) {
  error_code ec;
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  const auto address = asio::ip::make_address(host, ec);
  if (ec) {
    return invalid_argument(
        str_cat("the HTTP host must be an address or localhost, not ", quoted(options.host)));
  }
  if (!address.is_loopback() && !options.allow_remote) {
    return Status(StatusCode::kPermissionDenied,
                  str_cat("HTTP on ", host, " can be reached from other machines and asks for no ",
                          "key: allow it with allow_remote_http, or bind to 127.0.0.1"));
  }
  return tcp::endpoint(address, options.port);
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions given, Service& service)
      : options(std::move(given)),
        mailbox(
            std::make_shared<Mailbox>([this] { asio::post(io, [box = mailbox] { box->run(); }); })),
        routes(std::make_shared<const DoorContext>(
            DoorContext{service, mailbox, options.version, unix_seconds()})),
        acceptor(io),
        accept_pause(io) {}

  Status listen() {
    ASSIGN_OR_RETURN(const tcp::endpoint endpoint, endpoint_of(options));
    const bool loopback = endpoint.address().is_loopback();
    core.rules = {.loopback_only = loopback, .allowed_hosts = options.allowed_hosts};
    error_code ec;
    acceptor.open(endpoint.protocol(), ec);
    if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor.bind(endpoint, ec);
    if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
    if (!ec) local = acceptor.local_endpoint(ec);
    if (!ec) return {};
    return unavailable(
        str_cat("cannot listen on ", options.host, ":", options.port, ": ", ec.message()));
  }

  void accept() {
    acceptor.async_accept([this](const error_code& ec, tcp::socket socket) {
      if (ec == asio::error::operation_aborted || core.stopping) return;
      if (!ec) {
        take(std::move(socket));
        return accept();
      }
      // Out of descriptors, most likely: the queue stays full, and trying again at once would spin.
      log_warning(str_cat("http: accept: ", ec.message()));
      accept_pause.expires_after(kAcceptPause);
      accept_pause.async_wait([this](const error_code& stopped) {
        if (!stopped) accept();
      });
    });
  }

  void take(tcp::socket socket) {
    const bool fits = core.connections.size() - core.num_refused < options.max_connections;
    if (!fits && core.num_refused >= kMaxRefusals) return;
    auto connection = std::make_shared<Connection>(std::move(socket), core);
    core.connections.insert(connection);
    if (fits) {
      connection->start();
    } else {
      connection->refuse();
    }
  }

  template <typename Function>
  void for_each_connection(Function function) {
    const auto all = core.connections;  // closing erases
    for (const auto& connection : all)
      function(*connection);
  }

  /// On the I/O thread: no more work comes, and run() returns with the last connection.
  void begin_stop() {
    core.stopping = true;
    error_code ec;
    acceptor.close(ec);
    accept_pause.cancel();
    for_each_connection([](Connection& connection) { connection.close_if_idle(); });
  }

  HttpOptions options;
  asio::io_context io{1};
  std::shared_ptr<Mailbox> mailbox;
  Routes routes;
  ServerCore core{.options = options, .routes = routes, .rules = {}};
  tcp::acceptor acceptor;
  asio::steady_timer accept_pause;
  tcp::endpoint local;
  std::promise<void> ended;
  std::thread thread;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  stop(Clock::now());
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpOptions options, Service& service) {
  if (options.num_threads != 1) {
    return invalid_argument(str_cat("http threads must be 1, not ", options.num_threads));
  }
  auto impl = std::make_unique<Impl>(std::move(options), service);
  RETURN_IF_ERROR(impl->listen());
  impl->accept();
  Impl& state = *impl;
  state.thread = std::thread([&state] {
    state.io.run();
    state.ended.set_value();
  });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::string HttpServer::address() const {
  const auto& local = impl_->local;
  const std::string host = local.address().to_string();
  return local.address().is_v6() ? str_cat("[", host, "]:", local.port())
                                 : str_cat(host, ":", local.port());
}

void HttpServer::stop(TimePoint deadline) {
  Impl& state = *impl_;
  if (!state.thread.joinable()) return;
  auto ended = state.ended.get_future();
  asio::post(state.io, [&state] { state.begin_stop(); });
  if (ended.wait_until(deadline) != std::future_status::ready) {
    asio::post(state.io, [&state] {
      state.for_each_connection([](Connection& connection) { connection.shut_down(); });
    });
    if (ended.wait_for(kStopGrace) != std::future_status::ready) {
      asio::post(state.io, [&state] {
        state.for_each_connection([](Connection& connection) { connection.reset(); });
        state.io.stop();
      });
    }
  }
  state.thread.join();
  state.mailbox->close();
  state.core.connections.clear();
}

}  // namespace brigade::router
