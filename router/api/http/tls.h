// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "router/api/http/socket.h"

namespace brigade::router {

/// A certificate and its key, ready for handshakes. Connections keep the one that they began with.
class TlsContext {
 public:
  virtual ~TlsContext() = default;
  [[nodiscard]] virtual std::unique_ptr<ClientSocket> accept(
      boost::asio::ip::tcp::socket socket) const = 0;
};

/// TLS 1.2 and 1.3, HTTP/1.1 alone by ALPN, no renegotiation, no client certificates. `certificate`
/// is a PEM file with the server's certificate first and those of its issuers behind it, `key` one
/// with its private key. kInvalidArgument when they cannot be read or are no pair;
/// kPermissionDenied when others than the owner may read the key.
[[nodiscard]] Result<std::shared_ptr<const TlsContext>> load_tls(const std::string& certificate,
                                                                 const std::string& key);

}  // namespace brigade::router
