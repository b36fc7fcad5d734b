// SPDX-License-Identifier: Apache-2.0
#include "common/net/endpoint.h"

#include <doctest/doctest.h>

namespace brigade::net {

TEST_CASE("endpoints that only this machine reaches are known as such") {
  for (const char* local : {"ipc:///tmp/x", "inproc://x", "tcp://127.0.0.1:*", "tcp://127.9.9.9:1",
                            "tcp://[::1]:80", "tcp://localhost:5", "tcp://[::ffff:127.0.0.1]:5"}) {
    CAPTURE(local);
    CHECK(is_local_endpoint(local));
  }
  for (const char* open : {"tcp://*:1", "tcp://0.0.0.0:1", "tcp://10.0.0.1:1", "tcp://[::]:1",
                           "tcp://127.example.org:1", "tcp://eth0:1", "udp://127.0.0.1:1", ""}) {
    CAPTURE(open);
    CHECK_FALSE(is_local_endpoint(open));
  }
}

TEST_CASE("malformed endpoints are refused with what is expected") {
  for (const char* bad :
       {"", "tcp://", "tcp://:1", "tcp://host", "tcp://host:", "tcp://host:99999", "tcp://host:1x",
        "tcp://::1:80", "tcp://[::1:80", "ipc://", "inproc://", "http://a:1"}) {
    CAPTURE(bad);
    CHECK(check_endpoint(bad).code() == StatusCode::kInvalidArgument);
  }
  CHECK(check_endpoint("ipc://" + std::string(108, 'a')).message().find("107") !=
        std::string::npos);
  for (const char* good : {"tcp://*:*", "tcp://10.0.0.1:0", "tcp://[fe80::1]:80", "ipc://a"}) {
    CAPTURE(good);
    CHECK(check_endpoint(good).ok());
  }
}

TEST_CASE("the address towards an endpoint of this machine, or one that is not known, is local") {
  for (const char* near : {"ipc:///a", "tcp://127.0.0.1:5", "tcp://no-such-host.invalid:5", ""}) {
    CAPTURE(near);
    CHECK(address_towards(near) == "127.0.0.1");
  }
  CHECK(address_towards("tcp://[::1]:5") == "[::1]");
}

TEST_CASE("an IPv4 address mapped into IPv6 is shown as IPv4") {
  CHECK(plain_endpoint("tcp://[::ffff:127.0.0.1]:5") == "tcp://127.0.0.1:5");
  CHECK(plain_endpoint("tcp://[::1]:5") == "tcp://[::1]:5");
  CHECK(plain_endpoint("ipc:///a") == "ipc:///a");
}

}  // namespace brigade::net
