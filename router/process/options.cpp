// SPDX-License-Identifier: Apache-2.0
#include "router/process/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <map>
#include <random>

#include "common/base/strings.h"
#include "common/wire/build_info.h"

namespace brigade::router {
namespace {

constexpr const char* kDescription =
    "Serves language models over workers that connect to it: it owns every request, decides what "
    "each\n"
    "worker does in each step, and streams the answers.\n\n"
    "  brigade-router --model models/SmolLM2-135M-Instruct.Q4_1.gguf\n"
    "  brigade-router --model big.gguf --tp 2 --pp 2 --http 127.0.0.1:8000\n"
    "  brigade-router --model big.gguf --workers tcp://0.0.0.0:7070 --keys router-keys.toml\n\n"
    "Then start tp x pp workers for each replica: brigade-worker --router ENDPOINT, with an "
    "endpoint of\n"
    "--workers (a `brigade` command of this user finds the router by itself). When enough replicas "
    "are\n"
    "ready, one line is printed: ready http://HOST:PORT SOCKET. SIGINT or SIGTERM ends it in "
    "order, a\n"
    "second one without waiting for running requests.\n";

/// Flags that set a key of the topology.
struct KeyFlag {
  const char* flag;
  const char* key;
  const char* value;
  const char* help;
};
constexpr KeyFlag kKeyFlags[] = {
    {"--tp", "tp", "N", "tensor-parallel ranks of each stage"},
    {"--pp", "pp", "N", "pipeline stages of each replica"},
    {"--http", "http", "HOST:PORT",
     "where the OpenAI-compatible API listens; port 0 picks a free one"},
    {"--socket", "socket", "ENDPOINT", "ZeroMQ endpoint for clients; port 0 picks a free one"},
    {"--activations", "activations", "int8|float",
     "how activations meet quantised weights; float is for checking"},
    {"--kv", "kv", "f16|f32", "how keys and values are kept"},
    {"--kv-blocks", "limits.max_kv_blocks", "N",
     "KV blocks (16 tokens) of a replica at most; 0: what its workers hold"},
    {"--step-tokens", "limits.step_tokens", "N",
     "tokens of one step: decodes first, then prefill chunks"},
    {"--max-seqs", "limits.max_seqs", "N", "requests running on a replica at a time"},
    {"--queue-requests", "limits.max_queued_requests", "N",
     "requests that may wait; above, they are refused (429)"},
    {"--queue-tokens", "limits.max_queued_tokens", "N", "tokens of requests that may wait"},
    {"--queue-tenant-requests", "limits.max_queued_requests_per_tenant", "N",
     "requests of one tenant that may wait"},
    {"--deadline-ms", "timeouts.request_ms", "MS", "for a request that brings no deadline"},
    {"--heartbeat-ms", "timeouts.heartbeat_ms", "MS", "a worker silent for longer is lost"},
    {"--load-ms", "timeouts.load_ms", "MS", "loading without progress for longer has failed"},
    {"--step-ms", "timeouts.step_ms", "MS", "a replica that owes a result for longer is torn down"},
    {"--sim-base-us", "sim.base_us", "US", "simulated devices: time of a step"},
    {"--sim-us-per-token", "sim.us_per_token", "US", "and of each token in it"},
    {"--sim-us-per-context-token", "sim.us_per_context_token", "US",
     "and of each token of context"},
    {"--sim-jitter", "sim.jitter", "FRACTION", "up to this part of a step's time more"},
    {"--sim-load-ms", "sim.load_ms", "MS", "pretended time to load weights"},
};

void declare(CLI::App& app, RouterOptions& options, std::string& config,
             std::map<std::string, std::string>& words) {
  app.add_option("--model", options.models, "GGUF file of a model to serve; may be repeated")
      ->option_text("PATH");
  app.add_option("--model-name", options.model_names,
                 "what requests call it, for each --model in order; default: its own name")
      ->option_text("NAME");
  app.add_option("--max-context", options.max_context,
                 "tokens of prompt and answer together at most")
      ->option_text("TOKENS");
  app.add_option("--config", config, "topology file whose values hold where no flag is given")
      ->option_text("FILE.toml");
  app.add_option(
         "--workers", options.worker_endpoints,
         "ZeroMQ endpoint for workers; may be repeated; default: ipc in the runtime folder and a "
         "free tcp port on loopback")
      ->option_text("ENDPOINT");
  for (const KeyFlag& flag : kKeyFlags) {
    app.add_option(flag.flag, words[flag.key], flag.help)->option_text(flag.value);
  }
  app.add_flag("!--no-http", options.http, "no HTTP door");
  app.add_flag("!--no-socket", options.socket, "no ZeroMQ door for clients");
  app.add_flag("--allow-remote-http", options.allow_remote_http,
               "let --http listen where other machines reach it (it asks for no key)");
  app.add_option(
         "--keys", options.keys,
         "key file (see `brigade keys`): clients and workers need keys then, and sockets may "
         "listen for other machines")
      ->option_text("FILE.toml");
  app.add_option("--runtime-dir", options.runtime_dir,
                 "where the router tells that it runs; default: $XDG_RUNTIME_DIR/brigade or "
                 "/tmp/brigade-UID")
      ->option_text("FOLDER");
  app.add_option("--expect-replicas", options.expect_replicas,
                 "say `ready` when so many are; default: the topology's dp, or 1")
      ->option_text("N");
  app.add_option("--grace", options.grace_s, "seconds that running requests get on SIGTERM")
      ->option_text("S");
  app.add_option("--expected-parent", options.expected_parent,
                 "end when this process, which must be the parent, ends")
      ->option_text("PID");
}

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

Duration ms(std::uint32_t value) {
  return std::chrono::milliseconds(value);
}

}  // namespace

bool parse_options(int argc, char** argv, RouterOptions& options, int& exit_code) {
  CLI::App app(kDescription, "brigade-router");
  app.set_version_flag("--version", std::string(wire::build_id()));
  std::string config;
  std::map<std::string, std::string> words;
  declare(app, options, config, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  const Status status = resolve(options, config, words);
  if (status.ok()) return true;
  std::cerr << "brigade-router: " << status.message() << "\n(--help tells what there is)\n";
  exit_code = 2;
  return false;
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
  config.bucket_edges = topology.limits.bucket_edges;
  config.max_queued_requests = topology.limits.max_queued_requests;
  config.max_queued_tokens = topology.limits.max_queued_tokens;
  config.max_queued_requests_per_tenant = topology.limits.max_queued_requests_per_tenant;
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
