// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "tools/bench/report.h"
#include "tools/bench/svg.h"
#include "tools/bench/units.h"

namespace brigade::tools {
namespace {

constexpr const char* kHead =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>brigade "
    "bench</title>\n"
    "<style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:760px;margin:2em auto;padding:0 1em;"
    "color:#222;background:#fff}\n"
    "table{border-collapse:collapse;margin:1em 0}\n"
    "td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}\n"
    "td:first-child,th:first-child{text-align:left}\n"
    "pre{background:#f6f6f6;padding:.8em;overflow-x:auto}\n"
    "svg{width:100%;margin:.6em 0;font-size:11px}\n"
    "svg rect{fill:#3b7dd8}svg polyline{fill:none;stroke:#3b7dd8;stroke-width:1.5}\n"
    "svg .axis{fill:none;stroke:#888}svg .mark{stroke:#d8593b;stroke-dasharray:3 3}\n"
    "svg .title{font-size:13px;font-weight:bold}\n"
    "</style></head><body>\n";

void append_table(std::ostringstream& out, const RunStats& stats) {
  out << "<table><tr><th></th><th>p50</th><th>p90</th><th>p99</th><th>max</th><th>mean</th></tr>\n";
  for (const NamedLatency& latency : latencies_of(stats)) {
    const LatencyHistogram& values = *latency.values;
    if (values.count() == 0) continue;
    out << "<tr><td>" << latency.title << "</td>";
    for (const double value : {values.percentile(0.5), values.percentile(0.9),
                               values.percentile(0.99), values.max(), values.mean()}) {
      out << "<td>" << format_seconds(value) << "</td>";
    }
    out << "</tr>\n";
  }
  out << "</table>\n";
}

void append_timelines(std::ostringstream& out, const Timeline& timeline) {
  std::vector<double> tokens;
  std::vector<double> in_flight;
  std::vector<double> refused;
  double running = 0;
  bool any_refused = false;
  for (const Timeline::Point& point : timeline.points()) {
    running += static_cast<double>(point.started) - static_cast<double>(point.ended);
    tokens.push_back(static_cast<double>(point.tokens) / timeline.width_s());
    in_flight.push_back(running);
    refused.push_back(point.refused / timeline.width_s());
    any_refused = any_refused || point.refused > 0;
  }
  out << svg_line("Output tokens a second", tokens, timeline.width_s());
  out << svg_line("Requests in flight", in_flight, timeline.width_s());
  if (any_refused) out << svg_line("Refusals a second", refused, timeline.width_s());
}

}  // namespace

std::string report_html(const Report& report) {
  std::ostringstream out;
  out << kHead << "<h1>brigade bench</h1>\n<p>" << escape_html(report.url) << ", "
      << escape_html(report.model) << "</p>\n<table>\n";
  for (const auto& [name, value] : report.settings) {
    out << "<tr><td>" << escape_html(name) << "</td><td>" << escape_html(value) << "</td></tr>\n";
  }
  out << "</table>\n";
  if (report.interrupted) out << "<p><b>Interrupted: this is what there is.</b></p>\n";
  out << "<pre>";
  for (const std::string& line : summary_lines(report))
    out << escape_html(line) << "\n";
  out << "</pre>\n";
  append_table(out, report.stats);
  for (const NamedLatency& latency : latencies_of(report.stats)) {
    if (latency.values->count() > 0 && latency.values != &report.stats.start_delay) {
      out << svg_histogram(latency.title, *latency.values);
    }
  }
  append_timelines(out, report.stats.timeline);
  out << "</body></html>\n";
  return out.str();
}

}  // namespace brigade::tools
