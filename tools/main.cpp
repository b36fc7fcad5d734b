// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/config/topology.h"
#include "tools/api_keys.h"
#include "tools/bench/command.h"
#include "tools/cli.h"
#include "tools/commands.h"
#include "tools/inspect.h"
#include "tools/keys.h"
#include "tools/launch.h"
#include "tools/perplexity.h"
#include "tools/placement.h"
#include "tools/replay.h"
#include "tools/supervisor.h"

namespace brigade::tools {
namespace {

/// Options of `brigade up` that set the topology key of the same name.
struct KeyOption {
  const char* key;
  const char* value;  ///< how the help names what it takes
  const char* help;
};
constexpr KeyOption kUpOptions[] = {
    {"model", "PATH", "GGUF file of the model"},
    {"tp", "N", "tensor-parallel ranks of each stage"},
    {"pp", "N", "pipeline stages of each replica"},
    {"dp", "N", "replicas"},
    {"threads", "N", "threads of each worker"},
    {"http", "HOST:PORT", "where the OpenAI-compatible API listens; port 0 picks a free one"},
    {"socket", "ENDPOINT", "ZeroMQ endpoint for clients; port 0 picks a free one"},
    {"activations", "int8|float", "how activations meet quantised weights; float is for checking"},
    {"kv", "f16|f32", "how keys and values are kept"},
    {"device", "cpu|sim", "compute, or simulate with the costs of [sim]"},
};

struct UpOptions {
  std::string file;
  std::map<std::string, std::string> words;  ///< by key
  std::vector<std::string> settings;         ///< KEY=VALUE
  std::uint64_t kv_memory_bytes = 0;         ///< 0: not said
};

/// Without a file: two stages of two ranks, the smallest grid with both kinds of parallelism, and
/// few enough processes for two cores.
config::Topology default_topology() {
  config::Topology topology;
  topology.tp = 2;
  topology.pp = 2;
  return topology;
}

Result<config::Topology> make_topology(const UpOptions& options) {
  config::Topology topology = default_topology();
  if (!options.file.empty()) {
    ASSIGN_OR_RETURN(topology, config::load_topology(options.file));
  }
  for (const auto& [key, word] : options.words) {
    if (!word.empty()) RETURN_IF_ERROR(config::set_key(topology, key, word));
  }
  if (options.kv_memory_bytes > 0) {
    topology.limits.kv_memory_mib = std::max<std::uint64_t>(1, options.kv_memory_bytes >> 20U);
  }
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      return invalid_argument(str_cat("--set takes KEY=VALUE, got ", quoted(setting)));
    }
    RETURN_IF_ERROR(
        config::set_key(topology, setting.substr(0, equals), setting.substr(equals + 1)));
  }
  RETURN_IF_ERROR(config::check(topology));
  ASSIGN_OR_RETURN(topology.model, find_model(topology.model));
  RETURN_IF_ERROR(check_model(topology));
  return topology;
}

void add_up(CLI::App& app, Action& action) {
  auto* up = app.add_subcommand("up", "Start a router and its workers here and supervise them");
  up->footer(
      "Starts brigade-router and tp x pp x dp brigade-worker processes, and prints one line\n"
      "  ready http://HOST:PORT SOCKET\n"
      "when all replicas can answer. Workers that die are started again. Ctrl-C stops everything.\n"
      "Without a file: two stages of two ranks.\n\n"
      "Examples:\n"
      "  brigade up\n"
      "  brigade up configs/tp2-dp2.toml --http 127.0.0.1:9000\n"
      "  brigade up --tp 3 --threads 2 --set limits.max_seqs=64\n"
      "  brigade up --show-config          every key, its meaning and its value\n");
  auto options = std::make_shared<UpOptions>();
  auto show = std::make_shared<bool>(false);
  up->add_option("TOPOLOGY.toml", options->file, "topology file (see configs/)")->option_text(" ");
  for (const KeyOption& option : kUpOptions) {
    up->add_option(str_cat("--", option.key), options->words[option.key], option.help)
        ->option_text(option.value)
        ->take_last();
  }
  up->add_option("--kv-memory", options->kv_memory_bytes,
                 "memory for keys and values of each worker, such as 512MiB; default: what the "
                 "weights leave of an equal share of half the available memory")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->option_text("SIZE");
  up->add_option("--set", options->settings, "any key of configs/reference.toml")
      ->option_text("KEY=VALUE ...");
  up->add_flag("--show-config", *show, "print the topology as a file, start nothing");
  up->callback([&action, options, show] {
    action = [options, show]() -> Status {
      ASSIGN_OR_RETURN(config::Topology topology, make_topology(*options));
      if (*show) {
        std::cout << config::to_toml(topology);
        return {};
      }
      return Supervisor(std::move(topology)).run();
    };
  });
}

void add_generation_options(CLI::App* command, GenerateOptions& options) {
  command->add_option("--model", options.model, "name of the model; default: the first one served")
      ->option_text("NAME");
  command->add_option("--max-tokens", options.max_tokens, "end after this many tokens")
      ->capture_default_str();
  command->add_option("--temperature", options.temperature, "0 takes the likeliest token each time")
      ->capture_default_str();
  command->add_option("--top-p", options.top_p, "sample among tokens of this total probability")
      ->capture_default_str();
  command->add_option("--top-k", options.top_k, "sample among this many likeliest tokens")
      ->option_text("N");
  command
      ->add_option("--min-p", options.min_p,
                   "sample among tokens of at least this share of the likeliest one's probability")
      ->option_text("P");
  command
      ->add_option("--repetition-penalty", options.repetition_penalty,
                   "above 1, tokens of prompt and answer come rarer again")
      ->option_text("X");
  command
      ->add_option("--presence-penalty", options.presence_penalty,
                   "-2 to 2: above 0, tokens of the answer come rarer again")
      ->option_text("X");
  command
      ->add_option("--frequency-penalty", options.frequency_penalty,
                   "as --presence-penalty, each time that they came")
      ->option_text("X");
  command->add_option("--seed", options.seed, "the same seed draws the same tokens")
      ->option_text("N");
  command->add_option("--stop", options.stop, "end before this text; may be given several times")
      ->option_text("TEXT")
      ->expected(1)
      ->take_all();
  command->add_option("--system", options.system, "what the model is told first")
      ->option_text("TEXT");
}

void add_run(CLI::App& app, Action& action) {
  auto* run = app.add_subcommand("run", "Ask one question and stream the answer");
  run->footer(
      "Examples:\n"
      "  brigade run \"Why is the sky blue?\"\n"
      "  brigade run --raw \"Once upon a time\" --max-tokens 40\n"
      "  brigade run - < question.txt\n");
  auto options = std::make_shared<GenerateOptions>();
  run->add_option("PROMPT", options->prompt, "what to ask; - reads standard input")
      ->required()
      ->option_text(" ");
  run->add_flag("--raw", options->raw, "continue the text as it is, without the chat template");
  run->add_flag("--stats", options->stats, "then tell what ran where and how fast");
  add_generation_options(run, *options);
  auto http = add_http(run);
  run->callback([&action, options, http] {
    action = [options, http] {
      return with_router(*http, [&](const ApiClient& api) { return run_prompt(api, *options); });
    };
  });
}

void add_chat(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("chat", "Talk with the model; it remembers the conversation");
  command->footer(
      "Each line is a message. /clear forgets the conversation, /quit or Ctrl-D leaves, Ctrl-C\n"
      "stops an answer. Works with a pipe too: printf 'Hi\\nAnd you?\\n' | brigade chat\n");
  auto options = std::make_shared<GenerateOptions>();
  add_generation_options(command, *options);
  auto http = add_http(command);
  command->callback([&action, options, http] {
    action = [options, http] {
      return with_router(*http, [&](const ApiClient& api) { return chat(api, *options); });
    };
  });
}

void add_status(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("status", "Show replicas, ranks, KV blocks and the queue");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "as JSON, for programs");
  auto http = add_http(command);
  command->callback([&action, as_json, http] {
    action = [as_json, http] {
      return with_router(*http, [&](const ApiClient& api) { return show_status(api, *as_json); });
    };
  });
}

void add_drain(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("drain", "Take a replica out of service without losing a request");
  command->footer(
      "The replica takes no new requests; when its running ones have ended its workers leave.\n"
      "`brigade status` tells the replicas' numbers.\n");
  auto replica = std::make_shared<std::int64_t>(0);
  auto wait_s = std::make_shared<std::uint32_t>(0);
  command->add_option("REPLICA", *replica, "the replica's number")->required()->option_text(" ");
  command->add_option("--wait", *wait_s, "wait for the end, at most this long")
      ->option_text("SECONDS");
  auto http = add_http(command);
  command->callback([&action, replica, wait_s, http] {
    action = [replica, wait_s, http] {
      return with_router(*http,
                         [&](const ApiClient& api) { return drain(api, *replica, *wait_s); });
    };
  });
}

void add_tokenize(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("tokenize", "Show the tokens of a text");
  command->footer(
      "With --model the file's own tokenizer is used here; without, the router is asked.\n"
      "Prints one token a line: its id and its text.\n");
  auto options = std::make_shared<TokenizeOptions>();
  command->add_option("TEXT", options->text, "the text; - reads standard input")
      ->required()
      ->option_text(" ");
  command->add_option("--model", options->model, "GGUF file")->option_text("PATH");
  command->add_flag("--special", options->special, "texts of special tokens become those tokens");
  command->add_flag("--json", options->as_json, "as JSON, for programs");
  auto http = add_http(command);
  command->callback([&action, options, http] {
    action = [options, http]() -> Status {
      if (!options->model.empty()) return tokenize_here(*options);
      return with_router(*http,
                         [&](const ApiClient& api) { return tokenize_by_router(api, *options); });
    };
  });
}

void add_inspect(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("inspect", "Tell what a model file is and what it needs");
  command->footer(
      "Says what the file holds, tensors by type, how much memory each rank of a grid would take,\n"
      "the tokenizer and the chat template, and warns of what looks wrong. Reads the header "
      "alone:\n"
      "large files take no longer. A model in parts is named by its first.\n\n"
      "Examples:\n"
      "  brigade inspect model.gguf\n"
      "  brigade inspect model.gguf --tp 2 --pp 2 --context 4096\n"
      "  brigade inspect model.gguf --json | jq .ranks\n");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("FILE", options->path, "GGUF file")->required()->option_text(" ");
  command->add_option("--tp", options->tp, "tensor-parallel ranks of each stage")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  command->add_option("--pp", options->pp, "pipeline stages")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  command
      ->add_option("--context", options->context,
                   "tokens to keep keys and values of, all sequences together; default: the "
                   "model's context")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->option_text("TOKENS");
  command->add_flag("--json", options->as_json, "as JSON, for programs");
  command->callback([&action, options] { action = [options] { return inspect(*options); }; });
}

void add_perplexity(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("perplexity", "Measure how well a model foresees a text, on a grid here");
  command->footer(
      "Starts a router and workers for FILE, scores TEXT in windows of --context tokens (of each "
      "the\nsecond half, as llama.cpp's perplexity does; with --stride, its last tokens), and "
      "stops them.\n\n"
      "Examples:\n"
      "  brigade perplexity model.gguf text.txt\n"
      "  brigade perplexity model.gguf text.txt --tp 2 --activations float --json\n"
      "  cat *.txt | brigade perplexity model.gguf - --context 2048 --stride 512\n");
  auto options = std::make_shared<PerplexityOptions>();
  auto up = std::make_shared<UpOptions>();
  command->add_option("FILE", up->words["model"], "GGUF file")->required()->option_text(" ");
  command->add_option("TEXT", options->text, "file of UTF-8 text; - reads standard input")
      ->required()
      ->option_text(" ");
  command->add_option("--context", options->context, "tokens of a window")
      ->check(CLI::Range(3, 1 << 24))
      ->capture_default_str();
  command
      ->add_option("--stride", options->stride,
                   "tokens from one window to the next, all of them scored; default: the context")
      ->check(CLI::Range(1, 1 << 24))
      ->option_text("N");
  for (const KeyOption& option : kUpOptions) {
    const std::string_view key = option.key;
    if (key == "tp" || key == "pp" || key == "threads" || key == "activations" || key == "kv") {
      command->add_option(str_cat("--", key), up->words[option.key], option.help)
          ->option_text(option.value)
          ->take_last();
    }
  }
  command->add_flag("--json", options->as_json, "as JSON, for programs");
  command->callback([&action, options, up] {
    action = [options, up]() -> Status {
      // Its own server, beside whatever else runs here: free ports, and all CPUs unless told.
      up->words.insert({{"http", "127.0.0.1:0"}, {"socket", "tcp://127.0.0.1:0"}});
      for (const char* key : {"tp", "pp"}) {
        if (up->words[key].empty()) up->words[key] = "1";
      }
      ASSIGN_OR_RETURN(config::Topology topology, make_topology(*up));
      if (up->words["threads"].empty()) {
        topology.threads = std::max(1U, num_usable_cpus() / topology.num_ranks());
      }
      return perplexity(std::move(topology), *options);
    };
  });
}

void add_keys(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("keys", "Make CURVE keys for a server on real hosts");
  command->footer(
      "Writes key files into a directory: one pair for the router and one for each role (service,\n"
      "worker, operator). Secret keys are readable by their owner alone; existing files are "
      "kept.\n");
  auto directory = std::make_shared<std::string>();
  command->add_option("DIR", *directory, "where to write them")->required()->option_text(" ");
  command->callback(
      [&action, directory] { action = [directory] { return write_keys(*directory); }; });
}

void add_api_keys(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("api-keys", "Make, list and revoke keys of the HTTP API");
  command->require_subcommand(1);
  command->footer(
      "The keys are in a file that a router is given by --api-keys (or the key api.keys of a "
      "topology)\nand reads again when it changes. It has hashes alone: a key is shown once.\n\n"
      "Examples:\n"
      "  brigade api-keys add keys.toml --name \"chat front end\" --tenant web --tokens-per-minute "
      "100000\n"
      "  brigade api-keys add keys.toml --name prometheus --scope metrics\n"
      "  brigade api-keys tenant keys.toml web --max-concurrent 32\n"
      "  brigade api-keys list keys.toml\n"
      "  brigade api-keys revoke keys.toml 3f9a12cd\n");
  auto file = std::make_shared<std::string>();
  const auto add_command = [command, file](const char* name, const char* help) {
    auto* sub = command->add_subcommand(name, help);
    sub->add_option("FILE", *file, "the key file")->required()->option_text(" ");
    return sub;
  };
  auto key = std::make_shared<NewApiKey>();
  auto* add = add_command("add", "Add a key, and print it");
  add->add_option("--name", key->name, "for people")->option_text("TEXT");
  add->add_option("--tenant", key->tenant, "whose requests these are: tenants share fairly")
      ->option_text("NAME");
  add->add_option("--scope", key->scopes, "inference, admin or metrics; may be repeated")
      ->option_text("SCOPE");
  add->add_option("--requests-per-minute", key->requests_per_minute, "0: no limit")
      ->option_text("N");
  add->add_option("--tokens-per-minute", key->tokens_per_minute,
                  "of prompts and answers together; 0: no limit")
      ->option_text("N");
  add->callback(
      [&action, file, key] { action = [file, key] { return add_api_key(*file, *key); }; });
  auto* list = add_command("list", "Show the keys' ids, tenants, scopes and limits");
  list->callback([&action, file] { action = [file] { return list_api_keys(*file); }; });
  auto word = std::make_shared<std::string>();
  auto* revoke = add_command("revoke", "Remove a key");
  revoke->add_option("ID", *word, "the key's id")->required()->option_text(" ");
  revoke->callback(
      [&action, file, word] { action = [file, word] { return revoke_api_key(*file, *word); }; });
  auto max_concurrent = std::make_shared<std::uint32_t>(0);
  auto* tenant = add_command("tenant", "Limit how many requests of a tenant are in work at a time");
  tenant->add_option("NAME", *word, "the tenant")->required()->option_text(" ");
  tenant->add_option("--max-concurrent", *max_concurrent, "0: no limit")
      ->required()
      ->option_text("N");
  tenant->callback([&action, file, word, max_concurrent] {
    action = [=] { return limit_tenant(*file, *word, *max_concurrent); };
  });
}

void add_replay(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("replay", "Run a router's decision trace again and show what it decided");
  command->footer(
      "A router started with --trace FILE (or `brigade up --set trace=FILE`) writes one. The same\n"
      "events go through the same code; that every decision is the same is checked. Then a table\n"
      "tells what each request waited for: slots (sequences of a replica), budget (prompt tokens\n"
      "of its steps), KV (blocks), order, priority, bucket, fairness, preempted (who goes before "
      "it), reserved, or\n"
      "no replica.\n");
  auto options = std::make_shared<ReplayOptions>();
  command->add_option("FILE", options->file, "the trace")->required()->option_text(" ");
  command
      ->add_option("--model", options->models,
                   "GGUF file in place of the one that the trace names; may be repeated")
      ->option_text("PATH");
  command->add_flag("--steps", options->steps, "print every event and decision too");
  command->add_option("--request", options->request, "only of this request")->option_text("ID");
  command->callback([&action, options] { action = [options] { return replay(*options); }; });
}

int run_main(int argc, char** argv) {
  // Children take their level from this variable too: by default they say only what needs
  // attention.
  setenv("BRIGADE_LOG", "warning", /*overwrite=*/0);
  init_log("brigade");
  CLI::App app(
      "Brigade serves language models over a grid of worker processes.\n"
      "First steps: `brigade up` in one terminal, `brigade chat` in another.");
  app.name("brigade");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    const auto chosen = failed->get_subcommands();
    return str_cat("brigade: ", error.what(), "\nTry: brigade ",
                   chosen.empty() ? "" : chosen.front()->get_name() + " ", "--help\n");
  });
  Action action;
  for (auto* add : {add_up, add_run, add_chat, add_status, add_drain, add_tokenize, add_inspect,
                    add_perplexity, add_keys, add_api_keys, add_replay, add_bench}) {
    add(app, action);
  }
  const auto commands = app.get_subcommands([](CLI::App*) { return true; });
  const auto is_first_word = [&](const CLI::App* command) {
    return command->get_name() == argv[1];
  };
  if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(commands, is_first_word)) {
    std::cerr << "brigade: there is no command " << quoted(argv[1]) << "\nTry: brigade --help\n";
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const Status status = action();
  if (status.ok()) return 0;
  std::cerr << "brigade: " << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace brigade::tools

int main(int argc, char** argv) {
  return brigade::tools::run_main(argc, argv);
}
