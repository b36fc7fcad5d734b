// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/topology.h"
#include "router/api/http/server.h"
#include "router/core/router.h"

namespace brigade::router {

struct RouterOptions {
  config::Topology topology;        ///< of --config, with the flags' values over it
  std::vector<std::string> models;  ///< GGUF files
  /// Of the models in order; missing ones come from the files.
  std::vector<std::string> model_names;
  std::uint32_t max_context = 0;  ///< tokens; 0: the model's own limit
  /// Empty: ipc in the runtime folder, and tcp on loopback.
  std::vector<std::string> worker_endpoints;
  std::string runtime_dir;
  std::string keys;  ///< key file; empty: loopback and ipc only
  bool http = true;
  bool socket = true;
  bool allow_remote_http = false;
  std::uint32_t expect_replicas = 0;  ///< before `ready` is printed; 0: the topology's dp
  std::uint32_t grace_s = 30;         ///< for running requests, on SIGTERM
  pid_t expected_parent = 0;          ///< 0: anyone
};

/// Fills in the rest of `options`: the topology of the file `config` (if any) with `words` (values
/// by topology key) over it, and what follows from it.
[[nodiscard]] Status resolve(RouterOptions& options, const std::string& config,
                             const std::map<std::string, std::string>& words);

[[nodiscard]] RouterConfig make_router_config(const config::Topology& topology);

/// Where and how the HTTP door listens.
[[nodiscard]] Result<HttpOptions> make_http_options(const RouterOptions& options);
/// The files that the HTTP door reads again when they change.
[[nodiscard]] std::vector<std::string> watched_files(const config::Topology::Api& api);

struct HostPort {
  std::string host;  ///< an IPv6 address without its brackets
  std::uint16_t port = 0;
};
[[nodiscard]] Result<HostPort> parse_host_port(const std::string& text);

}  // namespace brigade::router
