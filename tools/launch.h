// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/topology.h"
#include "tools/http_client.h"
#include "tools/placement.h"

/// How the programs are started and found: their options and the router's discovery file.
namespace brigade::tools {

/// Seconds that running requests get to end when the server is stopped.
inline constexpr int kGraceSeconds = 5;

/// A topology as a file that children of this process can read by its path, and that leaves nothing
/// behind: it lives in memory, as long as this object.
class TopologyFile final {
 public:
  static Result<TopologyFile> make(const config::Topology& topology);
  TopologyFile(TopologyFile&& other) noexcept;
  TopologyFile(const TopologyFile&) = delete;
  TopologyFile& operator=(const TopologyFile&) = delete;
  ~TopologyFile();

  [[nodiscard]] std::string path() const;

 private:
  explicit TopologyFile(int fd) : fd_(fd) {}
  int fd_ = -1;
};

/// The command lines; the first word is the program's path.
[[nodiscard]] std::vector<std::string> router_arguments(const std::string& program,
                                                        const config::Topology& topology,
                                                        const std::string& topology_file);
[[nodiscard]] std::vector<std::string> worker_arguments(const std::string& program,
                                                        const config::Topology& topology,
                                                        const std::string& router_endpoint,
                                                        std::uint32_t index,
                                                        const RankPlacement& placement);

/// Where a router is asked for answers, and where for status and drain.
struct RouterAddress {
  HttpAddress http;
  HttpAddress admin;
};

struct FoundRouter {
  RouterAddress address;
  std::string client_endpoint;
  std::string worker_endpoint;
};

/// The router of that process, once it listens.
[[nodiscard]] std::optional<FoundRouter> find_router_of(std::int64_t pid);

/// The router that a command talks to: the one at `http` when that is not empty, else the one that
/// runs on this machine. kNotFound when there is none, kFailedPrecondition when there are several;
/// the message says what to do. A router found here gives its key; another one gets that of the
/// variable BRIGADE_API_KEY.
[[nodiscard]] Result<RouterAddress> find_router(const std::string& http);

/// Removes the files that a killed router or worker of that pid could not: its record and its
/// sockets.
void remove_traces_of(std::int64_t pid);

/// The path of the model: `path`, or where tools/fetch-model puts it, looked for from the working
/// directory and from this program upwards. kNotFound with what to do.
[[nodiscard]] Result<std::string> find_model(const std::string& path);

/// Refuses a file that is no model or does not fit the grid, by its header alone: before any
/// process is started, so that a wrong file is told at once and in one line.
[[nodiscard]] Status check_model(const config::Topology& topology);

}  // namespace brigade::tools
