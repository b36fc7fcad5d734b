// SPDX-License-Identifier: Apache-2.0
#include "tools/commands.h"

#include <unistd.h>

#include <iomanip>
#include <iostream>
#include <iterator>
#include <sstream>
#include <thread>

#include "common/base/strings.h"

namespace brigade::tools {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

void print_piece(std::string_view text) {
  std::cout << text << std::flush;
}

/// `-` stands for standard input.
std::string text_or_stdin(const std::string& text) {
  if (text != "-") return text;
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

Result<std::string> model_or_first(const ApiClient& api, const std::string& model) {
  if (!model.empty()) return model;
  return api.first_model();
}

json::object request_body(const GenerateOptions& options, const std::string& model) {
  json::object body{{"model", model},
                    {"max_tokens", options.max_tokens},
                    {"temperature", options.temperature},
                    {"top_p", options.top_p},
                    {"top_k", options.top_k},
                    {"min_p", options.min_p},
                    {"repetition_penalty", options.repetition_penalty},
                    {"presence_penalty", options.presence_penalty},
                    {"frequency_penalty", options.frequency_penalty}};
  if (options.seed >= 0) body["seed"] = options.seed;
  if (!options.stop.empty()) body["stop"] = json::value_from(options.stop);
  return body;
}

/// Three lines: what answered, what each rank held, how fast it was.
std::string render_stats(const StatusView& status, const StreamSummary& summary) {
  std::ostringstream out;
  std::size_t num_ranks = 0;
  std::int64_t tp_size = 0;
  std::int64_t pp_size = 0;
  std::ostringstream layers;
  for (const ReplicaView& replica : status.replicas) {
    num_ranks += replica.ranks.size();
    for (const RankView& rank : replica.ranks) {
      tp_size = std::max(tp_size, rank.tp_rank + 1);
      pp_size = std::max(pp_size, rank.pp_stage + 1);
      if (&replica != &status.replicas.front()) continue;
      if (rank.tp_rank == 0) {
        layers << (rank.pp_stage == 0 ? "" : "; ") << "stage " << rank.pp_stage << " layers "
               << rank.layers.begin << "-" << rank.layers.end - 1 << " in processes ";
      } else {
        layers << ", ";
      }
      layers << rank.pid;
    }
  }
  const std::string model = status.replicas.empty() ? "" : status.replicas.front().model;
  const double decode_s = summary.total_s - summary.first_token_s;
  const auto plural = [](std::int64_t count, std::string_view noun) {
    return str_cat(count, " ", noun, count == 1 ? "" : "s");
  };
  out << std::fixed << model << " ran on "
      << str_cat(num_ranks, " worker process", num_ranks == 1 ? "" : "es") << ": "
      << plural(tp_size, "tensor-parallel rank") << " x " << plural(pp_size, "pipeline stage")
      << " x " << plural(static_cast<std::int64_t>(status.replicas.size()), "replica")
      << ", under one router.\n"
      << layers.str() << ".\n"
      << summary.prompt_tokens << " prompt tokens, first text after " << std::setprecision(0)
      << 1000 * summary.first_token_s << " ms; " << summary.completion_tokens << " tokens in "
      << std::setprecision(2) << summary.total_s << " s";
  if (summary.completion_tokens > 1 && decode_s > 0) {
    out << " (" << std::setprecision(1)
        << static_cast<double>(summary.completion_tokens - 1) / decode_s << " tokens/s)";
  }
  out << ".\n";
  return out.str();
}

json::object message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

/// What stands before the first message.
json::array opening(const GenerateOptions& options) {
  json::array messages;
  if (!options.system.empty()) messages.push_back(message("system", options.system));
  return messages;
}

}  // namespace

Status run_prompt(const ApiClient& api, const GenerateOptions& options) {
  ASSIGN_OR_RETURN(const std::string model, model_or_first(api, options.model));
  const std::string prompt = text_or_stdin(options.prompt);
  json::object body = request_body(options, model);
  std::string path = "/v1/completions";
  if (options.raw) {
    body["prompt"] = prompt;
  } else {
    path = "/v1/chat/completions";
    json::array messages = opening(options);
    messages.push_back(message("user", prompt));
    body["messages"] = std::move(messages);
  }
  ASSIGN_OR_RETURN(const StreamSummary summary,
                   api.stream(path, std::move(body), /*stop_on_interrupt=*/false, print_piece));
  std::cout << std::endl;
  if (options.stats) {
    ASSIGN_OR_RETURN(const StatusView status, api.status(seconds(5)));
    std::cerr << render_stats(status, summary);
  }
  return {};
}

Status chat(const ApiClient& api, const GenerateOptions& options) {
  ASSIGN_OR_RETURN(const std::string model, model_or_first(api, options.model));
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) {
    std::cerr << "Talking to " << model
              << ". /clear forgets, /quit leaves, Ctrl-C stops an answer.\n";
  }
  json::array history = opening(options);
  std::string line;
  while (true) {
    if (terminal) std::cerr << "> ";
    if (!std::getline(std::cin, line) || line == "/quit") return {};
    if (line.empty()) continue;
    if (line == "/clear") {
      history = opening(options);
      continue;
    }
    history.push_back(message("user", line));
    json::object body = request_body(options, model);
    body["messages"] = history;
    std::string answer;
    auto summary =
        api.stream("/v1/chat/completions", std::move(body), terminal, [&](std::string_view text) {
          answer += text;
          print_piece(text);
        });
    std::cout << std::endl;
    if (summary.ok() || summary.status().code() == StatusCode::kCancelled) {
      history.push_back(message("assistant", answer));
    } else if (terminal) {
      // The conversation can go on, with the same message again or a shorter one.
      std::cerr << "error: " << summary.status().message() << "\n";
      history.pop_back();
    } else {
      return summary.status();
    }
  }
}

Status show_status(const ApiClient& api, bool as_json) {
  ASSIGN_OR_RETURN(const std::string body, api.status_json(seconds(10)));
  ASSIGN_OR_RETURN(const StatusView status, parse_status(body));
  if (as_json) {
    std::cout << body << (body.ends_with('\n') ? "" : "\n");
  } else {
    std::cout << "router     " << api.address().url() << "\n" << render_status(status);
  }
  return {};
}

Status drain(const ApiClient& api, std::int64_t replica, std::uint32_t wait_s) {
  RETURN_IF_ERROR(api.drain(replica));
  std::cout << "replica " << replica
            << " takes no new requests; its workers leave when its running ones have ended\n";
  const TimePoint deadline = Clock::now() + seconds(wait_s);
  while (wait_s > 0) {
    ASSIGN_OR_RETURN(const StatusView status, api.status(seconds(10)));
    bool gone = true;
    for (const ReplicaView& each : status.replicas) {
      if (each.id == replica && each.state != "drained") gone = false;
    }
    if (gone) {
      std::cout << "replica " << replica << " is drained\n";
      return {};
    }
    if (Clock::now() >= deadline) {
      return deadline_exceeded(
          str_cat("replica ", replica, " still has requests after ", wait_s, " s"));
    }
    // The API has no call that waits for a change.
    std::this_thread::sleep_for(milliseconds(200));
  }
  return {};
}

Status tokenize_by_router(const ApiClient& api, const TokenizeOptions& options) {
  ASSIGN_OR_RETURN(const std::string model, api.first_model());
  const json::object body{{"model", model},
                          {"prompt", text_or_stdin(options.text)},
                          {"add_special_tokens", false},
                          {"return_token_strs", true}};
  ASSIGN_OR_RETURN(const json::value answer, api.tokenize(body));
  if (options.as_json) {
    std::cout << json::serialize(answer) << "\n";
    return {};
  }
  const json::object* object = answer.if_object();
  const json::value* tokens = object == nullptr ? nullptr : object->if_contains("tokens");
  const json::value* texts = object == nullptr ? nullptr : object->if_contains("token_strs");
  if (tokens == nullptr || !tokens->is_array())
    return data_loss("the router's answer has no tokens");
  for (std::size_t i = 0; i < tokens->as_array().size(); ++i) {
    std::cout << tokens->as_array()[i];
    if (texts != nullptr && texts->is_array() && i < texts->as_array().size()) {
      std::cout << "\t" << texts->as_array()[i];
    }
    std::cout << "\n";
  }
  return {};
}

}  // namespace brigade::tools
