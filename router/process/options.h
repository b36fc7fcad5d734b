// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/topology.h"
#include "router/core/router.h"

namespace brigade::router {

struct RouterOptions {
  config::Topology topology;        ///< of --config, with the flags' values over it
  std::vector<std::string> models;  ///< GGUF files
  std::vector<std::string>
      model_names;                ///< of the models in order; missing ones come from the files
  std::uint32_t max_context = 0;  ///< tokens; 0: the model's own limit
  std::vector<std::string>
      worker_endpoints;  ///< empty: ipc in the runtime folder, and tcp on loopback
  std::string runtime_dir;
  std::string keys;  ///< key file; empty: loopback and ipc only
  bool http = true;
  bool socket = true;
  bool allow_remote_http = false;
  std::uint32_t expect_replicas = 0;  ///< before `ready` is printed; 0: the topology's dp
  std::uint32_t grace_s = 30;         ///< for running requests, on SIGTERM
  pid_t expected_parent = 0;          ///< 0: anyone
};

/// Reads the command line. When there is nothing to run (--help, or a mistake, which is told),
/// `exit_code` is set and the result is false.
[[nodiscard]] bool parse_options(int argc, char** argv, RouterOptions& options, int& exit_code);

[[nodiscard]] RouterConfig make_router_config(const config::Topology& topology);

struct HostPort {
  std::string host;  ///< an IPv6 address without its brackets
  std::uint16_t port = 0;
};
[[nodiscard]] Result<HostPort> parse_host_port(const std::string& text);

}  // namespace brigade::router
