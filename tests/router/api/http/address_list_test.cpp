// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/address_list.h"

#include <doctest/doctest.h>

using namespace brigade;
using namespace brigade::router;

namespace {

bool allows(const std::vector<std::string>& list, const std::string& address) {
  return AddressList::parse(list).value().allows(boost::asio::ip::make_address(address));
}

}  // namespace

TEST_CASE("an address list takes what lies in its networks, IPv4 in IPv6 too") {
  struct Row {
    std::vector<std::string> list;
    std::string address;
    bool allowed;
  };
  const Row rows[] = {
      {{}, "203.0.113.9", true},
      {{"10.0.0.0/8"}, "10.255.0.1", true},
      {{"10.0.0.0/8"}, "11.0.0.1", false},
      {{"10.1.2.3/8"}, "10.9.9.9", true},
      {{"192.0.2.7"}, "192.0.2.7", true},
      {{"192.0.2.7"}, "192.0.2.8", false},
      {{"0.0.0.0/0"}, "198.51.100.1", true},
      {{"0.0.0.0/0"}, "2001:db8::1", false},
      {{"10.0.0.0/8"}, "::ffff:10.0.0.1", true},
      {{"10.0.0.0/8"}, "::ffff:11.0.0.1", false},
      {{"fd00::/8", "127.0.0.1"}, "fd12::1", true},
      {{"fd00::/8", "127.0.0.1"}, "fe80::1", false},
      {{"::1"}, "::1", true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.address);
    CHECK(allows(row.list, row.address) == row.allowed);
  }
  for (const char* bad : {"", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "host", "10.0.0.0/", "/8"}) {
    CAPTURE(bad);
    CHECK_FALSE(AddressList::parse({bad}).ok());
  }
}
