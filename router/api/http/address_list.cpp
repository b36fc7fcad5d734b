// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/address_list.h"

#include <algorithm>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

namespace ip = boost::asio::ip;
using boost::system::error_code;

}  // namespace

ip::address plain_address(const ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

Result<AddressList> AddressList::parse(const std::vector<std::string>& texts) {
  AddressList list;
  for (const std::string& text : texts) {
    const bool v6 = text.find(':') != std::string::npos;
    const std::string whole =
        text.find('/') != std::string::npos ? text : text + (v6 ? "/128" : "/32");
    error_code ec;
    if (v6) {
      list.v6_.push_back(ip::make_network_v6(whole, ec));
    } else {
      list.v4_.push_back(ip::make_network_v4(whole, ec));
    }
    if (ec) {
      return invalid_argument(str_cat(quoted(text), " is no address and no network such as ",
                                      "10.0.0.0/8 or fd00::/8"));
    }
  }
  return list;
}

bool AddressList::allows(const ip::address& address) const {
  if (v4_.empty() && v6_.empty()) return true;
  const ip::address plain = plain_address(address);
  if (plain.is_v4()) {
    return std::ranges::any_of(v4_, [&](const ip::network_v4& network) {
      return ip::network_v4(plain.to_v4(), network.prefix_length()).canonical() ==
             network.canonical();
    });
  }
  return std::ranges::any_of(v6_, [&](const ip::network_v6& network) {
    return ip::network_v6(plain.to_v6(), network.prefix_length()).canonical() ==
           network.canonical();
  });
}

}  // namespace brigade::router
