// SPDX-License-Identifier: Apache-2.0
#include "router/process/options.h"

#include <doctest/doctest.h>

namespace brigade::router {

TEST_CASE("addresses are a host and a port") {
  CHECK(parse_host_port("127.0.0.1:8000")->host == "127.0.0.1");
  CHECK(parse_host_port("127.0.0.1:8000")->port == 8000);
  CHECK(parse_host_port("[::1]:0")->host == "::1");
  for (const char* bad : {"", ":", ":80", "host", "host:", "host:x", "host:70000", "host:-1"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_host_port(bad).ok());
  }
}

TEST_CASE("flags hold over the topology file, and the grid says how many replicas to expect") {
  RouterOptions options;
  options.models = {"a.gguf"};
  REQUIRE(resolve(options, "", {{"tp", "2"}, {"limits.step_tokens", "64"}, {"kv", ""}}).ok());
  CHECK(options.topology.tp == 2);
  CHECK(options.expect_replicas == options.topology.dp);
  const RouterConfig config = make_router_config(options.topology);
  CHECK(config.tp_size == 2);
  CHECK(config.step_tokens == 64);
  CHECK_FALSE(config.schema_hash.empty());
}

TEST_CASE("wrong options are refused with what is wrong") {
  RouterOptions none;
  CHECK(resolve(none, "", {}).message().find("--model") != std::string::npos);
  RouterOptions names;
  names.models = {"a"};
  names.model_names = {"x", "y"};
  CHECK_FALSE(resolve(names, "", {}).ok());
  RouterOptions key;
  key.models = {"a"};
  CHECK_FALSE(resolve(key, "", {{"tp", "many"}}).ok());
  CHECK_FALSE(resolve(key, "/no/such/file.toml", {}).ok());
}

}  // namespace brigade::router
