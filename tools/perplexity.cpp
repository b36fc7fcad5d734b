// SPDX-License-Identifier: Apache-2.0
#include "tools/perplexity.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "common/base/strings.h"
#include "common/base/time.h"
#include "common/model/gguf.h"
#include "common/model/spec.h"
#include "common/model/tokenizer.h"
#include "tools/progress.h"
#include "tools/supervisor.h"

namespace brigade::tools {
namespace {

namespace json = boost::json;

/// More windows than stages are in work, so that no stage waits for this program.
constexpr std::size_t kWindowsPerStage = 2;
constexpr std::uint32_t kStepTokens = 512;

/// The text's tokens, and what is put in place of each window's first.
struct Tokens {
  std::vector<std::int32_t> ids;
  std::optional<std::int32_t> bos;
};

Result<std::string> read_text(const std::string& path) {
  std::string text;
  if (path == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file) return not_found(str_cat("cannot read the text ", quoted(path, 200)));
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  if (!model::is_valid_utf8(text)) {
    return invalid_argument(str_cat("the text ", quoted(path, 200), " is not valid UTF-8"));
  }
  return text;
}

Result<Tokens> tokenize(const model::GgufFile& file, const std::string& text) {
  ASSIGN_OR_RETURN(const auto tokenizer, model::Tokenizer::load(file));
  Tokens tokens;
  if (tokenizer->add_bos() && tokenizer->bos_id()) {
    tokens.bos = tokenizer->bos_id();
    tokens.ids.push_back(*tokens.bos);
  }
  tokenizer->encode(text, /*parse_special=*/false, tokens.ids);
  if (tokens.ids.size() < 3) {
    return invalid_argument(
        str_cat("the text has ", tokens.ids.size(), " tokens; at least 3 are needed"));
  }
  return tokens;
}

/// Scores windows, several at a time, and adds up.
class Scorer {
 public:
  Scorer(const ApiClient& api, std::string model, const Tokens& tokens,
         const std::vector<ScoreWindow>& windows)
      : api_(api),
        model_(std::move(model)),
        tokens_(tokens),
        logprobs_(windows.size()),
        windows_(windows) {}

  Status run(std::size_t num_at_a_time) {
    const TimePoint start = Clock::now();
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < std::min(num_at_a_time, windows_.size()); ++i)
      threads.emplace_back([this] { take_windows(); });
    take_windows();
    for (std::thread& thread : threads)
      thread.join();
    end_progress();
    RETURN_IF_ERROR(status_);
    // In the text's order, so that the sum does not depend on which window was ready first.
    for (const std::vector<double>& window : logprobs_) {
      for (const double logprob : window)
        nll_.add(logprob);
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
    return {};
  }

  [[nodiscard]] const NllSum& nll() const { return nll_; }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  void take_windows() {
    for (std::size_t i = next_++; i < windows_.size(); i = next_++) {
      auto logprobs = score(windows_[i]);
      const std::lock_guard lock(mutex_);
      if (!logprobs.ok()) {
        if (status_.ok()) status_ = logprobs.status();
        next_ = windows_.size();
        return;
      }
      logprobs_[i] = std::move(*logprobs);
      for (const double logprob : logprobs_[i])
        so_far_.add(logprob);
      ++num_done_;
      show_progress();
    }
  }

  Result<std::vector<double>> score(const ScoreWindow& window) const {
    json::array ids(tokens_.ids.begin() + static_cast<std::ptrdiff_t>(window.begin),
                    tokens_.ids.begin() + static_cast<std::ptrdiff_t>(window.end));
    if (tokens_.bos) ids.front() = *tokens_.bos;
    ASSIGN_OR_RETURN(const std::vector<double> logprobs, api_.score(model_, std::move(ids)));
    if (logprobs.size() != window.end - window.begin) {
      return data_loss(
          str_cat("the router scored ", logprobs.size(), " tokens of ", window.end - window.begin));
    }
    const auto first = static_cast<std::ptrdiff_t>(window.first_scored - window.begin);
    return std::vector<double>(logprobs.begin() + first, logprobs.end());
  }

  void show_progress() {
    if (isatty(STDERR_FILENO) == 0) return;
    std::ostringstream tail;
    tail << num_done_ << " of " << windows_.size() << " windows, perplexity " << std::fixed
         << std::setprecision(4) << so_far_.perplexity();
    const double fraction = static_cast<double>(num_done_) / static_cast<double>(windows_.size());
    std::cerr << "\r\033[K" << progress_bar("scoring ", fraction, tail.str(), terminal_width() - 1)
              << std::flush;
  }
  void end_progress() const {
    if (isatty(STDERR_FILENO) != 0 && num_done_ > 0) std::cerr << std::endl;
  }

  const ApiClient& api_;
  const std::string model_;
  const Tokens& tokens_;
  std::vector<std::vector<double>> logprobs_;  ///< [window]
  const std::vector<ScoreWindow>& windows_;
  std::atomic<std::size_t> next_ = 0;
  NllSum nll_;
  double seconds_ = 0;
  std::mutex mutex_;  // guards what follows
  NllSum so_far_;
  std::size_t num_done_ = 0;
  Status status_;
};

/// What is told at the end.
struct Report {
  std::string model;
  std::string text;
  std::int64_t context = 0;
  std::int64_t stride = 0;
  std::size_t num_tokens = 0;  ///< of the text
  std::size_t num_windows = 0;
  std::size_t num_seen = 0;  ///< in all windows together
  double seconds = 0;
  NllSum nll;
};

std::string report_json(const Report& report) {
  return json::serialize(json::object{
             {"model", report.model},
             {"text", report.text},
             {"context", report.context},
             {"stride", report.stride},
             {"text_tokens", report.num_tokens},
             {"windows", report.num_windows},
             {"scored_tokens", report.nll.count()},
             {"mean_nll", report.nll.mean()},
             {"mean_nll_standard_error", report.nll.standard_error()},
             {"perplexity", report.nll.perplexity()},
             {"perplexity_standard_error", report.nll.perplexity() * report.nll.standard_error()},
             {"seconds", report.seconds},
             {"tokens_per_second", static_cast<double>(report.num_seen) / report.seconds}}) +
         "\n";
}

std::string report_text(const Report& report) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(4) << "perplexity   " << report.nll.perplexity() << " +- "
      << report.nll.perplexity() * report.nll.standard_error() << "\n"
      << std::setprecision(5) << "mean NLL     " << report.nll.mean() << " +- "
      << report.nll.standard_error() << " nats a token\n"
      << "scored       " << report.nll.count() << " of " << report.num_tokens << " tokens, in "
      << report.num_windows << (report.num_windows == 1 ? " window" : " windows") << " of "
      << report.context << "\n"
      << std::setprecision(1) << "speed        "
      << static_cast<double>(report.num_seen) / report.seconds << " tokens/s, " << report.seconds
      << " s\n";
  return out.str();
}

}  // namespace

std::vector<ScoreWindow> plan_windows(std::size_t num_tokens, std::size_t context,
                                      std::size_t stride) {
  context = std::min(context, num_tokens);
  stride = std::min(stride, context);
  // The first token of a window has nothing before it.
  const std::size_t unscored = stride == context ? context / 2 + 1 : context - stride;
  std::vector<ScoreWindow> windows;
  for (std::size_t begin = 0; begin + context <= num_tokens; begin += stride) {
    windows.push_back({.begin = begin,
                       .first_scored = begin + std::max<std::size_t>(unscored, 1),
                       .end = begin + context});
  }
  return windows;
}

void NllSum::add(double logprob) {
  ++count_;
  sum_ -= logprob;
  sum_of_squares_ += logprob * logprob;
}

double NllSum::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

double NllSum::standard_error() const {
  if (count_ < 2) return 0;
  const auto count = static_cast<double>(count_);
  const double variance = sum_of_squares_ / count - mean() * mean();
  return std::sqrt(std::max(variance, 0.0) / (count - 1));
}

double NllSum::perplexity() const {
  return std::exp(mean());
}

Status perplexity(config::Topology topology, const PerplexityOptions& options) {
  ASSIGN_OR_RETURN(const auto file, model::GgufFile::open(topology.model));
  ASSIGN_OR_RETURN(const model::ModelSpec spec, model::read_spec(*file));
  RETURN_IF_ERROR(model::check_grid(spec, topology.tp, topology.pp));
  if (options.context > spec.context_length) {
    return invalid_argument(str_cat("--context ", options.context, " is above the model's ",
                                    spec.context_length, " tokens"));
  }
  const std::int64_t stride = options.stride == 0 ? options.context : options.stride;
  if (stride > options.context) {
    return invalid_argument(str_cat("--stride ", stride, " is above --context ", options.context,
                                    ": tokens between the windows would be left out"));
  }
  ASSIGN_OR_RETURN(const std::string text, read_text(options.text));
  ASSIGN_OR_RETURN(const Tokens tokens, tokenize(*file, text));
  const auto windows = plan_windows(tokens.ids.size(), static_cast<std::size_t>(options.context),
                                    static_cast<std::size_t>(stride));
  const std::size_t context = windows.front().end - windows.front().begin;
  topology.limits.step_tokens =
      std::min<std::uint32_t>(kStepTokens, static_cast<std::uint32_t>(context));
  const std::size_t num_at_a_time = kWindowsPerStage * topology.pp;
  Report report{.model = file->name(),
                .text = options.text,
                .context = static_cast<std::int64_t>(context),
                .stride = std::min(stride, static_cast<std::int64_t>(context)),
                .num_tokens = tokens.ids.size(),
                .num_windows = windows.size(),
                .num_seen = windows.size() * context};
  const auto score = [&](const ApiClient& api) -> Status {
    Scorer scorer(api, file->name(), tokens, windows);
    RETURN_IF_ERROR(scorer.run(num_at_a_time));
    report.nll = scorer.nll();
    report.seconds = scorer.seconds();
    return {};
  };
  RETURN_IF_ERROR(Supervisor(std::move(topology)).run_job(score));
  std::cout << (options.as_json ? report_json(report) : report_text(report));
  return {};
}

}  // namespace brigade::tools
