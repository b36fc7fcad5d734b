// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/listener.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::router {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Connections above the limit that are told so at one time; further ones are closed without a
/// word.
constexpr std::size_t kMaxRefusals = 64;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

Result<tcp::endpoint> endpoint_of(const ListenAddress& at) {
  error_code ec;
  const auto address = asio::ip::make_address(at.host == "localhost" ? "127.0.0.1" : at.host, ec);
  if (ec) {
    return invalid_argument(
        str_cat("the HTTP host must be an address or localhost, not ", quoted(at.host)));
  }
  return tcp::endpoint(address, at.port);
}

}  // namespace

Listener::Listener(asio::io_context& io, ServerCore core)
    : core_(std::move(core)), acceptor_(io), accept_pause_(io) {}

Status Listener::listen(const ListenAddress& at, bool has_keys, bool allow_remote) {
  ASSIGN_OR_RETURN(const tcp::endpoint endpoint, endpoint_of(at));
  const bool loopback = endpoint.address().is_loopback();
  if (!loopback && !allow_remote && !(has_keys && core_.tls != nullptr)) {
    return Status(StatusCode::kPermissionDenied,
                  str_cat("HTTP on ", at.host, " can be reached from other machines and ",
                          has_keys ? "sends keys in the clear" : "asks for no key",
                          ": give it both API keys and a TLS certificate, allow it as it is with "
                          "allow_remote_http, or bind to 127.0.0.1"));
  }
  core_.rules = {.loopback_only = loopback, .allowed_hosts = core_.options.allowed_hosts};
  error_code ec;
  acceptor_.open(endpoint.protocol(), ec);
  if (!ec) acceptor_.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor_.bind(endpoint, ec);
  if (!ec) acceptor_.listen(asio::socket_base::max_listen_connections, ec);
  if (!ec) local_ = acceptor_.local_endpoint(ec);
  if (!ec) return {};
  return unavailable(str_cat("cannot listen on ", at.host, ":", at.port, ": ", ec.message()));
}

void Listener::accept() {
  acceptor_.async_accept([this](const error_code& ec, tcp::socket socket) {
    if (ec == asio::error::operation_aborted || core_.shared.stopping) return;
    if (!ec) {
      take(std::move(socket));
      return accept();
    }
    // Out of descriptors, most likely: the queue stays full, and trying again at once would spin.
    log_warning(str_cat("http: accept: ", ec.message()));
    accept_pause_.expires_after(kAcceptPause);
    accept_pause_.async_wait([this](const error_code& stopped) {
      if (!stopped) accept();
    });
  });
}

void Listener::take(tcp::socket socket) {
  error_code ec;
  const auto peer = socket.remote_endpoint(ec);
  if (ec) return;
  if (!core_.allowed_peers.allows(peer.address())) {
    ++core_.shared.counts.peers_refused;
    return;
  }
  const bool fits = core_.connections.size() - core_.num_refused < core_.options.max_connections;
  if (!fits) {
    ++core_.shared.counts.connections_refused;
    // Over TLS a word would cost a handshake.
    if (core_.num_refused >= kMaxRefusals || core_.tls != nullptr) return;
  }
  auto client =
      core_.tls != nullptr ? core_.tls->accept(std::move(socket)) : plain_socket(std::move(socket));
  auto connection =
      std::make_shared<Connection>(std::move(client), plain_address(peer.address()), core_);
  core_.connections.insert(connection);
  if (fits) {
    ++core_.shared.counts.connections;
    connection->start();
  } else {
    connection->refuse();
  }
}

void Listener::begin_stop() {
  error_code ec;
  acceptor_.close(ec);
  accept_pause_.cancel();
  for_each_connection([](Connection& connection) { connection.close_if_idle(); });
}

void Listener::for_each_connection(const std::function<void(Connection&)>& function) {
  const auto all = core_.connections;  // closing erases
  for (const auto& connection : all)
    function(*connection);
}

std::string Listener::address() const {
  const std::string host = local_.address().to_string();
  return local_.address().is_v6() ? str_cat("[", host, "]:", local_.port())
                                  : str_cat(host, ":", local_.port());
}

std::string Listener::url() const {
  return str_cat(core_.tls != nullptr ? "https://" : "http://", address());
}

}  // namespace brigade::router
