// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "common/base/strings.h"
#include "tools/bench/report.h"
#include "tools/bench/units.h"

namespace brigade::tools {
namespace {

constexpr std::size_t kHistogramRows = 10;
constexpr std::size_t kBarWidth = 50;

std::string rate(double count, double seconds) {
  return format_count(seconds > 0 ? count / seconds : 0);
}

std::string percent(double part, double whole) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << (whole > 0 ? 100 * part / whole : 0) << " %";
  return out.str();
}

void append_table(std::ostringstream& out, const RunStats& stats) {
  out << std::left << std::setw(14) << "" << std::right;
  for (const char* name : {"p50", "p90", "p99", "max", "mean"})
    out << std::setw(11) << name;
  out << "\n";
  for (const NamedLatency& latency : latencies_of(stats)) {
    const LatencyHistogram& values = *latency.values;
    if (values.count() == 0) continue;
    out << std::left << std::setw(14) << latency.title << std::right;
    for (const double value : {values.percentile(0.5), values.percentile(0.9),
                               values.percentile(0.99), values.max(), values.mean()}) {
      out << std::setw(11) << format_seconds(value);
    }
    out << "\n";
  }
}

/// Equal steps from the least to the 99th percentile, and one row for what is above.
void append_histogram(std::ostringstream& out, const NamedLatency& latency) {
  const LatencyHistogram& values = *latency.values;
  if (values.count() < 2) return;
  const double low = values.min();
  const double high = values.percentile(0.99);
  if (high <= low * 1.01) return;  // all the same: the table tells it
  const double step = (high - low) / static_cast<double>(kHistogramRows);
  auto rows = values.binned(low, high + step, kHistogramRows + 1, /*logarithmic=*/false);
  const std::uint64_t most = *std::ranges::max_element(rows);
  out << "\n" << latency.title << "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool last = i + 1 == rows.size();
    const double to = last ? values.max() : low + step * static_cast<double>(i + 1);
    const double part = static_cast<double>(rows[i]) / static_cast<double>(most);
    const auto bar = static_cast<std::size_t>(std::lround(part * kBarWidth));
    out << "  to " << std::setw(9) << format_seconds(to) << "  " << std::string(bar, '#')
        << (bar > 0 ? " " : "") << rows[i] << "\n";
  }
}

}  // namespace

std::array<NamedLatency, 4> latencies_of(const RunStats& stats) {
  return {{{"ttft", "TTFT", &stats.ttft},
           {"itl", "ITL", &stats.itl},
           {"e2e", "end to end", &stats.e2e},
           {"start_delay", "start delay", &stats.start_delay}}};
}

std::vector<std::string> summary_lines(const Report& report) {
  const RunStats& stats = report.stats;
  std::vector<std::string> lines;
  lines.push_back(str_cat("requests    ", stats.complete, " complete in ",
                          format_seconds(stats.duration_s), " (",
                          rate(static_cast<double>(stats.complete), stats.duration_s), "/s), ",
                          stats.failed, " failed, ", stats.refused, " refusals",
                          stats.abandoned > 0 ? str_cat(", ", stats.abandoned, " abandoned") : "",
                          stats.cut > 0 ? str_cat(", ", stats.cut, " cut by the interrupt") : ""));
  lines.push_back(str_cat(
      "tokens      ", format_count(static_cast<double>(stats.output_tokens)), " out (",
      rate(static_cast<double>(stats.output_tokens), stats.duration_s), "/s), ",
      format_count(static_cast<double>(stats.prompt_tokens)), " in (",
      percent(static_cast<double>(stats.cached_tokens), static_cast<double>(stats.prompt_tokens)),
      " of them cached)"));
  if (!report.slo.empty()) {
    lines.push_back(
        str_cat("goodput     ", stats.good, " within the limits (",
                rate(static_cast<double>(stats.good), stats.duration_s), "/s, ",
                percent(static_cast<double>(stats.good), static_cast<double>(stats.complete)),
                " of those complete)"));
  }
  if (stats.refused > 0) {
    lines.push_back(str_cat(
        "refused     after ", format_seconds(stats.refusal.percentile(0.5)), " (p99 ",
        format_seconds(stats.refusal.percentile(0.99)), "), Retry-After ", stats.retry_after.min(),
        " to ", stats.retry_after.max(), " s, ", stats.retry_after.mean(), " s in the mean"));
  }
  if (stats.retries_taken + stats.retries_refused > 0) {
    lines.push_back(str_cat("retries     ", stats.retries_taken, " taken, ", stats.retries_refused,
                            " refused again"));
  }
  for (const auto& [kind, count] : stats.errors)
    lines.push_back(str_cat("  ", count, " x ", kind));
  return lines;
}

std::string report_text(const Report& report) {
  std::ostringstream out;
  out << report.url << "  " << report.model << "\n";
  for (const auto& [name, value] : report.settings)
    out << std::left << std::setw(12) << name << value << "\n";
  out << "\n";
  if (report.interrupted) out << "interrupted: this is what there is\n";
  for (const std::string& line : summary_lines(report))
    out << line << "\n";
  if (report.stats.e2e.count() == 0 && report.stats.itl.count() == 0) return out.str();
  out << "\n";
  append_table(out, report.stats);
  for (const NamedLatency& latency : latencies_of(report.stats)) {
    if (latency.values != &report.stats.start_delay) append_histogram(out, latency);
  }
  return out.str();
}

}  // namespace brigade::tools
