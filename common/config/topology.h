// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/wire/messages.h"

namespace brigade::config {

enum class Device : std::uint8_t { kCpu, kSim };

/// What a server is to be: a grid of tp x pp x dp workers, its doors and its limits. Each member is
/// a key of a topology file (nested structs are its tables) with the member's value as default;
/// configs/reference.toml lists all.
struct Topology {
  std::string model;  ///< path of a GGUF file
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
  std::uint32_t dp = 1;
  Device device = Device::kCpu;
  std::uint32_t threads = 1;  ///< of each worker
  wire::ActivationMode activations = wire::ActivationMode::kInt8;
  wire::KvType kv = wire::KvType::kF16;
  bool prefix_cache = true;  ///< KV of ended requests serves later ones with the same prefix
  std::string http = "127.0.0.1:8000";  ///< HOST:PORT, port 0 picks a free one
  bool allow_remote_http = false;       ///< http may listen where other machines reach it
  /// ZeroMQ endpoint for clients, port 0 picks a free one.
  std::string socket = "tcp://127.0.0.1:8001";
  std::string worker_socket = "";  ///< ZeroMQ endpoint for workers; empty: ipc, for this host alone
  std::string trace = "";          ///< file for the router's decision trace; empty: none

  struct Limits {
    std::uint32_t step_tokens = 256;
    std::uint32_t max_seqs = 256;
    std::uint64_t max_kv_blocks = 0;
    std::uint64_t worker_memory_mib = 0;
    std::uint64_t kv_memory_mib = 0;
    std::uint64_t max_queued_requests = 8192;
    std::uint64_t max_queued_tokens = 16'000'000;
    std::uint64_t max_queued_requests_per_tenant = 4096;
    std::uint64_t max_queued_tokens_per_tenant = 8'000'000;
    std::uint32_t max_queue_delay_ms = 30'000;
    std::uint32_t overload_calm_ms = 2'000;
    std::vector<std::uint32_t> bucket_edges = {128, 512, 2048};
    std::uint32_t queue_ageing_ms = 2000;
    std::map<std::string, std::uint32_t> tenant_weights = {};
    std::uint64_t trace_mib = 1024;
    bool operator==(const Limits&) const = default;
  } limits;

  struct Timeouts {
    std::uint32_t request_ms = 600'000;
    std::uint32_t heartbeat_ms = 10'000;
    std::uint32_t load_ms = 300'000;
    std::uint32_t step_ms = 60'000;
    std::uint32_t collective_ms = 30'000;
    bool operator==(const Timeouts&) const = default;
  } timeouts;

  struct Sim {
    double base_us = 1000;
    double us_per_token = 20;
    double us_per_context_token = 0.01;
    double jitter = 0;
    double load_ms = 50;
    bool operator==(const Sim&) const = default;
  } sim;

  /// What protects the HTTP API, and what tells about it.
  struct Api {
    std::string admin = "";
    std::string keys = "";
    std::string tls_certificate = "";
    std::string tls_key = "";
    std::vector<std::string> allow_addresses = {};
    std::vector<std::string> admin_allow_addresses = {};
    std::vector<std::string> allowed_hosts = {};
    std::vector<std::string> cors_origins = {};
    std::string access_log = "";
    bool access_log_prompts = false;
    bool vllm_metrics = false;
    std::uint32_t max_connections = 4096;
    std::uint32_t max_header_bytes = 16384;
    std::uint64_t max_body_bytes = 4 << 20;
    std::uint64_t max_stream_bytes = 256 << 10;
    std::uint32_t header_ms = 10'000;
    std::uint32_t idle_ms = 60'000;
    std::uint32_t write_ms = 30'000;
    bool operator==(const Api&) const = default;
  } api;

  bool operator==(const Topology&) const = default;

  [[nodiscard]] std::uint32_t ranks_per_replica() const { return tp * pp; }
  [[nodiscard]] std::uint32_t num_ranks() const { return tp * pp * dp; }
};

/// Reads a topology. An unknown key, a value of the wrong type or out of range is kInvalidArgument
/// with file, line and key, and with what there is instead. `source_name` stands for the file in
/// messages.
[[nodiscard]] Result<Topology> parse_topology(std::string_view toml, std::string_view source_name);

/// As parse_topology, of a file. kNotFound when it cannot be read.
[[nodiscard]] Result<Topology> load_topology(const std::string& path);

/// Sets one key from a word of the command line: `set_key(t, "limits.step_tokens", "128")`.
[[nodiscard]] Status set_key(Topology& topology, std::string_view key, std::string_view value);

/// What no single number can tell: sizes that multiply to too many workers, edges that do not rise.
[[nodiscard]] Status check(const Topology& topology);

/// Every key with its meaning and its value in `topology`, as a topology file.
[[nodiscard]] std::string to_toml(const Topology& topology);

[[nodiscard]] std::string_view to_string(Device device);
[[nodiscard]] std::string_view to_string(wire::ActivationMode mode);
[[nodiscard]] std::string_view to_string(wire::KvType type);

}  // namespace brigade::config
