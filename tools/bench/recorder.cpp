// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/recorder.h"

#include <algorithm>

#include "common/base/strings.h"
#include "tools/bench/units.h"

namespace brigade::tools {
namespace {

/// More kinds of errors than this are one.
constexpr std::size_t kMaxKinds = 50;

}  // namespace

Result<Slo> Slo::parse(std::string_view text) {
  Slo slo;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    std::optional<double>* limit = name == "ttft"  ? &slo.ttft_s
                                   : name == "itl" ? &slo.itl_s
                                   : name == "e2e" ? &slo.e2e_s
                                                   : nullptr;
    if (limit == nullptr || limit->has_value() || equals == std::string_view::npos) {
      return invalid_argument(
          str_cat("expected limits such as ttft=200ms,itl=50ms,e2e=2s, got ", quoted(item)));
    }
    ASSIGN_OR_RETURN(*limit, parse_seconds(item.substr(equals + 1)));
  }
  return slo;
}

bool Slo::met_by(const Outcome& outcome) const {
  if (outcome.end != Outcome::End::kComplete || !outcome.first_token_s) return false;
  if (ttft_s && *outcome.first_token_s - outcome.due_s > *ttft_s) return false;
  if (e2e_s && outcome.end_s - outcome.due_s > *e2e_s) return false;
  if (!itl_s || outcome.output_tokens < 2) return true;
  const double spread_s = outcome.last_token_s - *outcome.first_token_s;
  return spread_s / static_cast<double>(outcome.output_tokens - 1) <= *itl_s;
}

void Recorder::on_tokens(double at_s, std::optional<double> gap_s, std::uint32_t num_tokens) {
  stats_.timeline.at(at_s).tokens += num_tokens;
  stats_.output_tokens += num_tokens;
  if (gap_s) stats_.itl.add(*gap_s / num_tokens, num_tokens);
}

void Recorder::on_end(const Outcome& outcome, bool retry) {
  RunStats& stats = stats_;
  Timeline::Point& point = stats.timeline.at(outcome.end_s);
  ++point.ended;
  stats.duration_s = std::max(stats.duration_s, outcome.end_s);
  stats.prompt_tokens += outcome.prompt_tokens;
  stats.cached_tokens += outcome.cached_tokens;
  if (!retry) stats.start_delay.add(outcome.sent_s - outcome.due_s);
  if (retry && outcome.end == Outcome::End::kRefused) ++stats.retries_refused;
  if (retry && outcome.first_token_s) ++stats.retries_taken;
  switch (outcome.end) {
    case Outcome::End::kComplete:
      ++stats.complete;
      if (slo_.met_by(outcome)) ++stats.good;
      if (outcome.first_token_s) stats.ttft.add(*outcome.first_token_s - outcome.due_s);
      stats.e2e.add(outcome.end_s - outcome.due_s);
      return;
    case Outcome::End::kRefused:
      ++stats.refused;
      ++point.refused;
      stats.refusal.add(outcome.end_s - outcome.sent_s);
      if (outcome.retry_after_s) stats.retry_after.add(*outcome.retry_after_s);
      break;
    case Outcome::End::kFailed:
      ++stats.failed;
      break;
    case Outcome::End::kAbandoned:
      ++stats.abandoned;
      return;
    case Outcome::End::kCut:
      ++stats.cut;
      return;
  }
  const bool room = stats.errors.contains(outcome.error) || stats.errors.size() < kMaxKinds;
  ++stats.errors[room ? outcome.error : "others"];
}

}  // namespace brigade::tools
