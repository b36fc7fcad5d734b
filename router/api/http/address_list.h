// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace brigade::router {

/// An IPv4 address that came through an IPv6 socket, as what it is.
[[nodiscard]] boost::asio::ip::address plain_address(const boost::asio::ip::address& address);

/// From whom connections are taken: addresses and networks (`10.0.0.0/8`, `fd00::/8`,
/// `192.0.2.7`). An empty list takes all.
class AddressList final {
 public:
  static Result<AddressList> parse(const std::vector<std::string>& texts);
  [[nodiscard]] bool allows(const boost::asio::ip::address& address) const;

 private:
  std::vector<boost::asio::ip::network_v4> v4_;
  std::vector<boost::asio::ip::network_v6> v6_;
};

}  // namespace brigade::router
