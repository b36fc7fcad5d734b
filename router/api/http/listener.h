// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "router/api/http/connection.h"

namespace brigade::router {

/// One address that clients connect to, and its connections. I/O thread only, but for listen().
class Listener final {
 public:
  /// `options` and what else `core` refers to must outlive the listener.
  Listener(boost::asio::io_context& io, ServerCore core);

  /// kInvalidArgument for an address that is none; kPermissionDenied for one that others can reach,
  /// unless it has both keys and TLS, or `allow_remote`; kUnavailable when it cannot be bound.
  Status listen(const ListenAddress& at, bool has_keys, bool allow_remote);
  void accept();
  /// For connections that come from now on; null: none.
  void set_tls(std::shared_ptr<const TlsContext> tls) { core_.tls = std::move(tls); }

  void begin_stop();
  void for_each_connection(const std::function<void(Connection&)>& function);
  /// When the thread has ended.
  void drop_connections() { core_.connections.clear(); }

  /// host:port with the real port; an IPv6 host in brackets.
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::size_t num_connections() const { return core_.connections.size(); }

 private:
  void take(boost::asio::ip::tcp::socket socket);

  ServerCore core_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer accept_pause_;
  boost::asio::ip::tcp::endpoint local_;
};

}  // namespace brigade::router
