// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/wire/build_info.h"
#include "router/process/options.h"
#include "router/process/process.h"

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
    {"--admin", "api.admin", "HOST:PORT", "where status, drain and metrics are, apart from --http"},
    {"--api-keys", "api.keys", "FILE.toml", "who may ask for what (see `brigade api-keys`)"},
    {"--tls-certificate", "api.tls_certificate", "FILE.pem", "certificate of --http"},
    {"--tls-key", "api.tls_key", "FILE.pem", "and its key"},
    {"--access-log", "api.access_log", "FILE", "a line of JSON about each request; -: stderr"},
    {"--socket", "socket", "ENDPOINT", "ZeroMQ endpoint for clients; port 0 picks a free one"},
    {"--trace", "trace", "FILE",
     "write every event and decision down, for `brigade replay`; prompts are in it"},
    {"--activations", "activations", "int8|float",
     "how activations meet quantised weights; float is for checking"},
    {"--kv", "kv", "f16|f32", "how keys and values are kept"},
    {"--prefix-cache", "prefix_cache", "true|false",
     "keep the KV of ended requests for later ones that begin alike"},
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
    {"--heartbeat-ms", "timeouts.heartbeat_ms", "MS",
     "a worker silent for longer between steps is lost"},
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
  app.add_flag_callback(
      "--vllm-metrics", [&words] { words["api.vllm_metrics"] = "true"; },
      "/metrics has vLLM's names too, besides brigade_ ones");
  app.add_flag("!--no-socket", options.socket, "no ZeroMQ door for clients");
  app.add_flag("--allow-remote-http", options.allow_remote_http,
               "let --http listen where other machines reach it without both --api-keys and "
               "--tls-certificate");
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

/// When there is nothing to run (--help, or a mistake, which is told), `exit_code` is set and the
/// result is false.
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

}  // namespace
}  // namespace brigade::router

int main(int argc, char** argv) {
  namespace router = brigade::router;
  router::block_stop_signals();
  router::RouterOptions options;
  int exit_code = 0;
  if (!router::parse_options(argc, argv, options, exit_code)) return exit_code;
  brigade::init_log("router");
  auto process = router::RouterProcess::start(options);
  brigade::Status status = process.status();
  if (process.ok()) status = (*process)->run();
  if (status.ok()) return 0;
  std::cerr << "brigade-router: " << status.message() << '\n';
  return 1;
}
