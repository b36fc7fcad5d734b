// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl.hpp>

#include "common/base/status.h"
#include "tools/http_client.h"

namespace brigade::tools {

/// Gives `context` the issuers to trust: those of the file that BRIGADE_CA_FILE names, else the
/// system's. Nothing when `address` is not to be verified.
[[nodiscard]] Status load_issuers(boost::asio::ssl::context& context, const HttpAddress& address);

/// Before its handshake: the server must prove to be `address`, unless that is not to be verified.
template <typename Stream>
void expect_host(Stream& stream, const HttpAddress& address) {
  if (!address.verify) return;
  stream.set_verify_mode(boost::asio::ssl::verify_peer);
  stream.set_verify_callback(boost::asio::ssl::host_name_verification(address.host));
  SSL_set_tlsext_host_name(stream.native_handle(), address.host.c_str());
}

}  // namespace brigade::tools
