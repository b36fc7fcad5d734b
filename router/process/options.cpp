// SPDX-License-Identifier: Apache-2.0
#include "router/process/options.h"

#include <charconv>
#include <map>
#include <random>

#include "common/base/strings.h"
#include "common/wire/build_info.h"

namespace brigade::router {
namespace {

Duration ms(std::uint32_t value) {
  return std::chrono::milliseconds(value);
}

}  // namespace

Status resolve(RouterOptions& options, const std::string& config,
               const std::map<std::string, std::string>& words) {
  if (!config.empty()) {
    ASSIGN_OR_RETURN(options.topology, config::load_topology(config));
  }
  for (const auto& [key, word] : words) {
    if (!word.empty()) RETURN_IF_ERROR(config::set_key(options.topology, key, word));
  }
  RETURN_IF_ERROR(config::check(options.topology));
  if (options.models.empty() && !options.topology.model.empty()) {
    options.models.push_back(options.topology.model);
  }
  if (options.models.empty()) return invalid_argument("give a model: --model PATH");
  if (options.model_names.size() > options.models.size()) {
    return invalid_argument("there are more --model-name than --model");
  }
  if (options.worker_endpoints.empty() && !options.topology.worker_socket.empty()) {
    options.worker_endpoints.push_back(options.topology.worker_socket);
  }
  if (options.expect_replicas == 0) options.expect_replicas = options.topology.dp;
  return {};
}

RouterConfig make_router_config(const config::Topology& topology) {
  RouterConfig config;
  config.tp_size = topology.tp;
  config.pp_size = topology.pp;
  config.activations = topology.activations;
  config.kv_type = topology.kv;
  config.max_kv_blocks = topology.limits.max_kv_blocks;
  config.step_tokens = topology.limits.step_tokens;
  config.max_seqs = topology.limits.max_seqs;
  config.prefix_cache = topology.prefix_cache;
  config.bucket_edges = topology.limits.bucket_edges;
  config.max_queued_requests = topology.limits.max_queued_requests;
  config.max_queued_tokens = topology.limits.max_queued_tokens;
  config.max_queued_requests_per_tenant = topology.limits.max_queued_requests_per_tenant;
  config.max_queued_tokens_per_tenant = topology.limits.max_queued_tokens_per_tenant;
  config.max_queue_delay = ms(topology.limits.max_queue_delay_ms);
  config.overload_calm = ms(topology.limits.overload_calm_ms);
  config.queue_ageing = ms(topology.limits.queue_ageing_ms);
  config.tenant_weights = topology.limits.tenant_weights;
  config.default_deadline = ms(topology.timeouts.request_ms);
  config.heartbeat_timeout = ms(topology.timeouts.heartbeat_ms);
  config.load_timeout = ms(topology.timeouts.load_ms);
  config.step_timeout = ms(topology.timeouts.step_ms);
  config.collective_timeout_ms = topology.timeouts.collective_ms;
  config.sim = {.base_us = topology.sim.base_us,
                .us_per_token = topology.sim.us_per_token,
                .us_per_context_token = topology.sim.us_per_context_token,
                .jitter = topology.sim.jitter,
                .load_ms = topology.sim.load_ms};
  config.schema_hash = wire::schema_hash();
  std::random_device random;
  config.seed = (std::uint64_t{random()} << 32) | random();
  return config;
}

Result<HttpOptions> make_http_options(const RouterOptions& options) {
  const config::Topology::Api& api = options.topology.api;
  ASSIGN_OR_RETURN(const HostPort at, parse_host_port(options.topology.http));
  HttpOptions http;
  http.at = {.host = at.host, .port = at.port};
  if (!api.admin.empty()) {
    ASSIGN_OR_RETURN(const HostPort admin, parse_host_port(api.admin));
    http.admin = ListenAddress{.host = admin.host, .port = admin.port};
  }
  http.allow_remote = options.allow_remote_http;
  http.api_keys = api.keys;
  http.tls_certificate = api.tls_certificate;
  http.tls_key = api.tls_key;
  http.allowed_hosts = api.allowed_hosts;
  http.allow_addresses = api.allow_addresses;
  http.admin_allow_addresses = api.admin_allow_addresses;
  http.cors_origins = api.cors_origins;
  http.access_log = api.access_log;
  http.access_log_prompts = api.access_log_prompts;
  http.vllm_metrics = api.vllm_metrics;
  http.version = wire::build_id();
  http.max_connections = api.max_connections;
  http.max_header_bytes = api.max_header_bytes;
  http.max_body_bytes = api.max_body_bytes;
  http.max_stream_bytes = api.max_stream_bytes;
  http.header_timeout = ms(api.header_ms);
  http.idle_timeout = ms(api.idle_ms);
  http.write_timeout = ms(api.write_ms);
  return http;
}

std::vector<std::string> watched_files(const config::Topology::Api& api) {
  std::vector<std::string> files;
  for (const std::string& file : {api.keys, api.tls_certificate, api.tls_key}) {
    if (!file.empty()) files.push_back(file);
  }
  return files;
}

Result<HostPort> parse_host_port(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto wrong = [&] { return invalid_argument(str_cat(quoted(text), " is not HOST:PORT")); };
  if (colon == std::string::npos || colon == 0) return wrong();
  HostPort result = {.host = text.substr(0, colon)};
  if (result.host.front() == '[' && result.host.back() == ']') {
    result.host = result.host.substr(1, result.host.size() - 2);
  }
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, result.port);
  if (error != std::errc() || stop != end) return wrong();
  return result;
}

}  // namespace brigade::router
