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
