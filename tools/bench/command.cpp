// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/command.h"

#include <utility>

#include "tools/bench/bench.h"
#include "tools/bench/units.h"

namespace brigade::tools {
namespace {

constexpr const char* kFooter =
    "Two kinds of load. A closed loop keeps --concurrency requests running: it asks how much the\n"
    "server can do. An open loop sends --rate requests a second whatever comes back, as users do:\n"
    "it asks how long they wait; past what the server can do they wait longer and longer, or are\n"
    "refused (429).\n\n"
    "What is told: TTFT, from when a request is due to its first token; ITL, from one token to "
    "the\n"
    "next (an event with several tokens counts as so many equal parts); end to end; and the start\n"
    "delay, by which the generator itself was late. Prompts are random common words, other ones\n"
    "for each seed, so that a prefix cache helps only where --shared-prefix says. Answers always\n"
    "have their full length (ignore_eos). Ctrl-C ends a run early, with a report.\n\n"
    "Lengths in tokens: 128, 64..512 (uniform), normal:MEAN,DEVIATION[,MIN..MAX],\n"
    "lognormal:MEAN,DEVIATION[,MIN..MAX].\n\n"
    "A trace has a line of JSON for each request:\n"
    "  {\"time\": 0.5, \"prompt_tokens\": 300, \"output_tokens\": 40, \"prefix_group\": 2}\n"
    "time in seconds; the first TOKENS of --shared-prefix are the same within a prefix_group.\n\n"
    "Examples:\n"
    "  brigade bench --concurrency 16 --requests 200\n"
    "  brigade bench --rate 5 --duration 1m --prompt-tokens 64..512 --slo ttft=500ms,itl=50ms\n"
    "  brigade bench --rate 20 --burst 10 --output-tokens lognormal:100,80,1..500\n"
    "  brigade bench --shared-prefix 256 --prefix-groups 4 --prompt-tokens 300\n"
    "  brigade bench --trace requests.jsonl --html report.html --json report.json\n"
    "  BRIGADE_API_KEY=... brigade bench --http https://llm.example.com:8000 --chat\n";

/// As words, until the command runs.
struct Words {
  std::string prompt_tokens = "128";
  std::string output_tokens = "64";
  std::string duration;
  std::string slo;
  std::string timeout = "10m";
  std::uint64_t requests = 0;
};

Status parse_words(const Words& words, BenchOptions& options) {
  ASSIGN_OR_RETURN(options.workload.prompt_tokens, Lengths::parse(words.prompt_tokens));
  ASSIGN_OR_RETURN(options.workload.output_tokens, Lengths::parse(words.output_tokens));
  ASSIGN_OR_RETURN(options.slo, Slo::parse(words.slo));
  ASSIGN_OR_RETURN(options.timeout_s, parse_seconds(words.timeout));
  if (!words.duration.empty()) {
    ASSIGN_OR_RETURN(options.duration_s, parse_seconds(words.duration));
  }
  if (words.requests > 0) options.workload.num_requests = words.requests;
  options.prompt_text = words.prompt_tokens + " tokens";
  options.output_text = words.output_tokens + " tokens";
  options.slo_text = words.slo;
  return {};
}

void add_load(CLI::App* command, BenchOptions& options, Words& words) {
  WorkloadOptions& work = options.workload;
  command
      ->add_option("--concurrency", options.concurrency,
                   "requests that run at all times (8); with --rate or --trace: at most")
      ->check(CLI::Range(1, 100'000))
      ->option_text("N");
  auto* rate = command->add_option("--rate", work.rate, "requests a second, at random times")
                   ->check(CLI::Range(1e-3, 1e6))
                   ->option_text("R");
  command->add_option("--burst", work.burst, "with --rate: so many come together")
      ->check(CLI::Range(1, 100'000))
      ->needs(rate)
      ->option_text("N");
  command->add_option("--trace", options.trace_file, "times and lengths from a file")
      ->excludes(rate)
      ->option_text("FILE");
  command->add_option("--requests", words.requests, "how many; default: 100, or all of --duration")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->option_text("N");
  command->add_option("--duration", words.duration, "start none after this, such as 30s or 5m")
      ->option_text("TIME");
  command->add_option("--warmup", options.warmup, "requests before those that are measured")
      ->option_text("N");
  command
      ->add_option("--retries", options.retries,
                   "try a refused request again, so often, each time after its Retry-After")
      ->option_text("N");
  command
      ->add_option("--abandon", work.abandon,
                   "part of the requests (0 to 1) whose client leaves somewhere before the end")
      ->check(CLI::Range(0.0, 1.0))
      ->option_text("PART");
  command->add_option("--timeout", words.timeout, "a request that takes longer has failed")
      ->capture_default_str()
      ->option_text("TIME");
  command->add_option("--seed", work.seed, "the same seed makes the same requests")
      ->capture_default_str()
      ->option_text("N");
}

void add_requests(CLI::App* command, BenchOptions& options, Words& words) {
  WorkloadOptions& work = options.workload;
  command->add_option("--prompt-tokens", words.prompt_tokens, "lengths of prompts")
      ->capture_default_str()
      ->option_text("LENGTHS");
  command->add_option("--output-tokens", words.output_tokens, "lengths of answers")
      ->capture_default_str()
      ->option_text("LENGTHS");
  command
      ->add_option("--shared-prefix", work.shared_prefix,
                   "tokens at the front of a prompt that its group shares (part of its length)")
      ->option_text("TOKENS");
  command->add_option("--prefix-groups", work.prefix_groups, "groups of --shared-prefix")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->option_text("N");
  command->add_flag("--chat", options.chat,
                    "chat messages of about that length, in place of prompts of token ids");
  command->add_option("--temperature", options.temperature, "0 takes the likeliest token")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str()
      ->option_text("T");
  command->add_option("--model", options.model, "name of the model; default: the first one served")
      ->option_text("NAME");
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("bench", "Load the router and measure it");
  command->footer(kFooter);
  auto options = std::make_shared<BenchOptions>();
  auto words = std::make_shared<Words>();
  add_load(command, *options, *words);
  add_requests(command, *options, *words);
  command
      ->add_option("--slo", words->slo,
                   "limits that a good request keeps (itl: in its mean), such as "
                   "ttft=200ms,itl=50ms,e2e=5s")
      ->option_text("LIMITS");
  command->add_option("--json", options->json_file, "write all numbers there; -: to the output")
      ->option_text("FILE");
  command->add_option("--html", options->html_file, "write a page with plots there")
      ->option_text("FILE");
  auto http = add_http(command);
  command->callback([&action, options, words, http] {
    action = [options, words, http]() -> Status {
      RETURN_IF_ERROR(parse_words(*words, *options));
      return with_router(*http, [&](const ApiClient& api) { return run_bench(api, *options); });
    };
  });
}

}  // namespace brigade::tools
