// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "tools/bench/latency_histogram.h"
#include "tools/bench/timeline.h"

namespace brigade::tools {

/// How one request went. Times in seconds after the start of the run.
struct Outcome {
  enum class End : std::uint8_t {
    kComplete,
    kRefused,    ///< 429, or 503 with Retry-After
    kFailed,     ///< any other error
    kAbandoned,  ///< we left, as planned
    kCut         ///< we left, because the run was interrupted
  };

  End end = End::kComplete;
  std::string error;                    ///< of kRefused and kFailed: its kind
  std::optional<double> retry_after_s;  ///< of kRefused
  double due_s = 0;                     ///< when it should have been sent
  double sent_s = 0;
  std::optional<double> first_token_s;
  double last_token_s = 0;
  double end_s = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
};

/// Limits that a request must keep to count as good; nothing: no limit.
struct Slo {
  std::optional<double> ttft_s;
  std::optional<double> itl_s;  ///< the mean of the request
  std::optional<double> e2e_s;

  /// `ttft=200ms,itl=50ms,e2e=2s`, each at most once.
  static Result<Slo> parse(std::string_view text);
  [[nodiscard]] bool empty() const { return !ttft_s && !itl_s && !e2e_s; }
  [[nodiscard]] bool met_by(const Outcome& outcome) const;
};

/// All that a run has to tell, in memory that does not grow with it.
struct RunStats {
  double duration_s = 0;  ///< until the last request's end
  std::uint64_t complete = 0;
  std::uint64_t refused = 0;  ///< answers, not requests: one that tries again may be refused again
  std::uint64_t failed = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t cut = 0;
  std::uint64_t good = 0;  ///< complete, and within the SLO
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;  ///< of all requests, complete or not
  LatencyHistogram ttft;            ///< from due to first token; of complete requests
  LatencyHistogram itl;             ///< one of each token after the first event
  LatencyHistogram e2e;             ///< from due to end; of complete requests
  LatencyHistogram start_delay;     ///< from due to sent: the generator's own lateness
  LatencyHistogram refusal;         ///< from sent to the refusal
  LatencyHistogram retry_after;     ///< as told with a refusal
  /// Waited as told, tried again: how that went.
  std::uint64_t retries_taken = 0;
  std::uint64_t retries_refused = 0;
  std::map<std::string, std::uint64_t> errors;
  Timeline timeline;
};

class Recorder final {
 public:
  explicit Recorder(Slo slo = {}) : slo_(slo) {}

  void on_start(double at_s) { ++stats_.timeline.at(at_s).started; }
  /// Tokens that came together, `gap_s` after the ones before them; no gap: the first ones. Each
  /// counts as a part of the gap, so that the mean is the time per token.
  void on_tokens(double at_s, std::optional<double> gap_s, std::uint32_t num_tokens);
  /// `retry`: it had been refused, and waited as long as it was told.
  void on_end(const Outcome& outcome, bool retry);

  [[nodiscard]] const RunStats& stats() const { return stats_; }

 private:
  Slo slo_;
  RunStats stats_;
};

}  // namespace brigade::tools
