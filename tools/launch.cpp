// SPDX-License-Identifier: Apache-2.0
#include "tools/launch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/base/memory.h"
#include "common/base/strings.h"
#include "common/config/discovery.h"
#include "common/model/gguf.h"
#include "common/model/spec.h"
#include "common/model/tokenizer_data.h"

namespace brigade::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelFile = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
/// Weights and KV of all workers together may take this part of what is free now.
constexpr std::uint64_t kFreeMemoryShare = 2;

std::uint64_t worker_memory_mib(const config::Topology& topology) {
  if (topology.limits.worker_memory_mib != 0) return topology.limits.worker_memory_mib;
  const std::uint64_t share = (available_memory() >> 20U) / kFreeMemoryShare / topology.num_ranks();
  return std::max<std::uint64_t>(share, 64);
}

/// The file itself, or below one of the folders from `start` upwards.
std::optional<fs::path> look_upwards(fs::path start, std::string_view file) {
  std::error_code error;
  for (; start.has_relative_path(); start = start.parent_path()) {
    if (fs::is_regular_file(start / file, error)) return start / file;
  }
  return std::nullopt;
}

/// This user's own router, on this machine: its certificate is for others.
Result<RouterAddress> address_of(const config::RouterRecord& record) {
  RouterAddress address;
  ASSIGN_OR_RETURN(address.http, parse_http_address(record.http));
  ASSIGN_OR_RETURN(address.admin, parse_http_address(record.admin));
  for (HttpAddress* of : {&address.http, &address.admin}) {
    of->api_key = record.api_key;
    of->verify = false;
  }
  return address;
}

/// Whether `name` is that of a file that the process made: `router-PID...` or `worker-PID...`.
bool is_file_of(std::string_view name, std::int64_t pid) {
  for (const std::string_view kind : {"router-", "worker-"}) {
    const std::string prefix = str_cat(kind, pid);
    if (!name.starts_with(prefix)) continue;
    return name.size() == prefix.size() || name[prefix.size()] < '0' || name[prefix.size()] > '9';
  }
  return false;
}

/// The router will say the same, but as one of two processes.
Status check_tokenizer(const model::GgufFile& file) {
  ASSIGN_OR_RETURN(const model::TokenizerData data, model::read_tokenizer_data(file));
  return model::make_tokenizer(data).status();
}

}  // namespace

Result<TopologyFile> TopologyFile::make(const config::Topology& topology) {
  TopologyFile file(memfd_create("topology.toml", MFD_CLOEXEC));
  const std::string text = config::to_toml(topology);
  if (file.fd_ < 0 ||
      write(file.fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return internal_error(str_cat("cannot write the topology: ", std::strerror(errno)));
  }
  return file;
}

TopologyFile::TopologyFile(TopologyFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

TopologyFile::~TopologyFile() {
  if (fd_ >= 0) close(fd_);
}

std::string TopologyFile::path() const {
  return str_cat("/proc/", getpid(), "/fd/", fd_);
}

std::vector<std::string> router_arguments(const std::string& program,
                                          const config::Topology& topology,
                                          const std::string& topology_file) {
  std::vector<std::string> words = {program,
                                    "--config",
                                    topology_file,
                                    "--grace",
                                    str_cat(kGraceSeconds),
                                    "--expected-parent",
                                    str_cat(getpid())};
  if (topology.allow_remote_http) words.emplace_back("--allow-remote-http");
  return words;
}

std::vector<std::string> worker_arguments(const std::string& program,
                                          const config::Topology& topology,
                                          const std::string& router_endpoint, std::uint32_t index,
                                          const RankPlacement& placement) {
  std::vector<std::string> words = {program,
                                    "--router",
                                    router_endpoint,
                                    "--name",
                                    str_cat("worker-", index),
                                    "--device",
                                    std::string(config::to_string(topology.device)),
                                    "--threads",
                                    str_cat(topology.threads),
                                    "--memory",
                                    str_cat(worker_memory_mib(topology), "MiB"),
                                    "--expected-parent",
                                    str_cat(getpid())};
  if (placement.pin) {
    words.insert(words.end(), {"--pin", "--first-cpu", str_cat(placement.first_cpu)});
  }
  if (topology.limits.kv_memory_mib != 0) {
    words.insert(words.end(), {"--kv-memory", str_cat(topology.limits.kv_memory_mib, "MiB")});
  }
  if (placement.spin) words.emplace_back("--spin");
  return words;
}

std::optional<FoundRouter> find_router_of(std::int64_t pid) {
  const auto folder = config::runtime_folder();
  if (!folder.ok()) return std::nullopt;
  for (const config::RouterRecord& record : config::read_records(*folder)) {
    if (record.pid != pid || record.workers.empty()) continue;
    auto address = address_of(record);
    if (!address.ok()) continue;
    return FoundRouter{.address = std::move(*address),
                       .client_endpoint = record.socket,
                       .worker_endpoint = record.workers.front()};
  }
  return std::nullopt;
}

Result<RouterAddress> find_router(const std::string& http) {
  if (!http.empty()) {
    ASSIGN_OR_RETURN(HttpAddress named, parse_http_address(http));
    if (const char* key = std::getenv("BRIGADE_API_KEY")) named.api_key = key;
    return RouterAddress{.http = named, .admin = named};
  }
  ASSIGN_OR_RETURN(const std::string folder, config::runtime_folder());
  std::vector<config::RouterRecord> records = config::read_records(folder);
  std::erase_if(records, [](const config::RouterRecord& record) { return record.http.empty(); });
  if (records.empty()) {
    return not_found(
        "no router runs on this machine for this user: start one with `brigade up`, or name one "
        "with "
        "--http http://HOST:PORT");
  }
  if (records.size() > 1) {
    std::string addresses;
    for (const config::RouterRecord& record : records)
      addresses += " " + record.http;
    return failed_precondition(
        str_cat("several routers run here; choose one with --http:", addresses));
  }
  return address_of(records.front());
}

void remove_traces_of(std::int64_t pid) {
  const auto folder = config::runtime_folder();
  if (!folder.ok()) return;
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(*folder, error)) {
    if (is_file_of(entry.path().filename().string(), pid)) files.push_back(entry.path());
  }
  for (const fs::path& file : files)
    fs::remove(file, error);
}

Result<std::string> find_model(const std::string& path) {
  std::error_code error;
  if (!path.empty()) {
    // Absolute, because workers open it too, wherever they run.
    const fs::path absolute = fs::canonical(path, error);
    if (error) return not_found(str_cat("cannot find the model ", quoted(path, 200)));
    return absolute.string();
  }
  auto found = look_upwards(fs::current_path(error), kModelFile);
  if (!found)
    found = look_upwards(fs::read_symlink("/proc/self/exe", error).parent_path(), kModelFile);
  if (!found) {
    return not_found(
        "no model: name one with --model PATH, or fetch the small one of the examples with "
        "tools/fetch-model");
  }
  return found->string();
}

Status check_model(const config::Topology& topology) {
  ASSIGN_OR_RETURN(const auto file, model::GgufFile::open(topology.model));
  ASSIGN_OR_RETURN(const model::ModelSpec spec, model::read_spec(*file));
  RETURN_IF_ERROR(check_tokenizer(*file).with_context(quoted(topology.model, 512)));
  return model::check_grid(spec, topology.tp, topology.pp);
}

}  // namespace brigade::tools
