// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/bench.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "common/base/files.h"
#include "common/base/strings.h"
#include "tools/bench/load_generator.h"
#include "tools/bench/report.h"
#include "tools/bench/request_maker.h"
#include "tools/bench/units.h"
#include "tools/progress.h"

namespace brigade::tools {
namespace {

constexpr std::uint32_t kDefaultConcurrency = 8;
constexpr std::uint32_t kDefaultOpenConcurrency = 10'000;
constexpr std::uint64_t kDefaultRequests = 100;
/// Warm-up prompts are others than the measured ones, or the prefix cache would know those.
constexpr std::uint64_t kWarmupSeed = 0x5741524d;

/// A line on standard error that is written over, where that is a terminal.
class ProgressLine {
 public:
  ProgressLine(std::string name, std::optional<std::uint64_t> size,
               std::optional<double> duration_s)
      : name_(std::move(name)),
        size_(size),
        duration_s_(duration_s),
        shown_(isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const LoadProgress& progress) const {
    if (!shown_) return;
    double fraction = 0;
    if (size_ && *size_ > 0) {
      fraction = static_cast<double>(progress.ended) / static_cast<double>(*size_);
    }
    if (duration_s_) fraction = std::max(fraction, progress.elapsed_s / *duration_s_);
    const std::string tail =
        str_cat(static_cast<long>(100 * std::min(fraction, 1.0)), " %  ", progress.ended,
                size_ ? str_cat(" of ", *size_) : "", " ended, ", progress.in_flight, " running");
    std::cerr << "\r\033[K" << progress_bar(name_, fraction, tail, terminal_width() - 1)
              << std::flush;
  }

 private:
  std::string name_;
  std::optional<std::uint64_t> size_;
  std::optional<double> duration_s_;
  bool shown_;
};

/// Runs the workload with a progress line. False when it was interrupted.
bool run_phase(LoadGenerator& generator, const char* name, Workload& workload,
               const RequestMaker& maker, LoadOptions options, Recorder& recorder) {
  const ProgressLine line(name, workload.size(), options.duration_s);
  options.make_request = [&](const PlannedRequest& request) {
    return maker.make(request, workload.prompt(request, maker.num_words()));
  };
  options.on_progress = [&](const LoadProgress& progress) { line.show(progress); };
  return generator.run(workload, options, recorder);
}

bool warm_up(LoadGenerator& generator, const BenchOptions& options, const RequestMaker& maker,
             const LoadOptions& load) {
  if (options.warmup == 0) return true;
  WorkloadOptions warmup = options.workload;
  warmup.trace.clear();
  warmup.rate = 0;
  warmup.abandon = 0;
  warmup.seed ^= kWarmupSeed;
  warmup.num_requests = options.warmup;
  Workload workload(std::move(warmup));
  LoadOptions without_end = load;
  without_end.duration_s.reset();
  without_end.concurrency = std::min(load.concurrency, kDefaultConcurrency);
  Recorder unused;
  return run_phase(generator, "warm-up ", workload, maker, without_end, unused);
}

std::vector<std::pair<std::string, std::string>> describe(const BenchOptions& options,
                                                          std::uint32_t concurrency) {
  std::vector<std::pair<std::string, std::string>> out;
  const WorkloadOptions& work = options.workload;
  std::string load = str_cat(concurrency, " at a time");
  if (!work.trace.empty()) {
    load = str_cat(work.trace.size(), " requests of ", options.trace_file, " at their times");
  } else if (work.rate > 0) {
    load = str_cat(work.rate, " a second in the mean",
                   work.burst > 1 ? str_cat(", ", work.burst, " together") : ", Poisson");
  }
  out.emplace_back("load", load);
  out.emplace_back("endpoint", options.chat ? "/v1/chat/completions" : "/v1/completions");
  if (work.trace.empty()) {
    out.emplace_back("prompts", options.prompt_text);
    out.emplace_back("answers", options.output_text);
  }
  if (work.shared_prefix > 0) {
    out.emplace_back("prefix", str_cat(work.shared_prefix, " tokens, the same in each of ",
                                       work.prefix_groups, " groups"));
  }
  if (work.abandon > 0) out.emplace_back("abandon", str_cat(work.abandon));
  if (!options.slo_text.empty()) out.emplace_back("limits", options.slo_text);
  out.emplace_back("seed", str_cat(work.seed));
  return out;
}

Status write_files(const BenchOptions& options, const Report& report) {
  if (options.json_file == "-") {
    std::cout << report_json(report);
  } else {
    std::cout << report_text(report);
    if (!options.json_file.empty()) {
      RETURN_IF_ERROR(replace_file(options.json_file, report_json(report), 0644));
    }
  }
  if (options.html_file.empty()) return {};
  return replace_file(options.html_file, report_html(report), 0644);
}

}  // namespace

Status run_bench(const ApiClient& api, BenchOptions options) {
  if (!options.trace_file.empty()) {
    ASSIGN_OR_RETURN(options.workload.trace, read_trace(options.trace_file));
  } else if (!options.workload.num_requests && !options.duration_s) {
    options.workload.num_requests = kDefaultRequests;
  }
  if (options.model.empty()) {
    ASSIGN_OR_RETURN(options.model, api.first_model());
  }
  ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::fetch(api, options.model));
  const RequestMaker maker(api.address(), std::move(vocabulary),
                           {.model = options.model,
                            .chat = options.chat,
                            .temperature = options.temperature,
                            .seed = options.workload.seed});
  raise_file_limit();
  ASSIGN_OR_RETURN(const auto generator, LoadGenerator::make(api.address()));
  Workload workload(options.workload);
  LoadOptions load{.concurrency = options.concurrency,
                   .duration_s = options.duration_s,
                   .retries = options.retries,
                   .timeout = std::chrono::duration_cast<Duration>(
                       std::chrono::duration<double>(options.timeout_s))};
  if (load.concurrency == 0) {
    load.concurrency = workload.open_loop() ? kDefaultOpenConcurrency : kDefaultConcurrency;
  }
  Report report{.url = api.address().url(),
                .model = options.model,
                .settings = describe(options, load.concurrency),
                .slo = options.slo};
  if (!warm_up(*generator, options, maker, load)) {
    return cancelled("interrupted in the warm-up: nothing was measured");
  }
  Recorder recorder(options.slo);
  report.interrupted = !run_phase(*generator, "bench ", workload, maker, load, recorder);
  report.stats = recorder.stats();
  RETURN_IF_ERROR(write_files(options, report));
  if (report.stats.complete > 0 || report.interrupted) return {};
  return unavailable("no request was completed");
}

}  // namespace brigade::tools
