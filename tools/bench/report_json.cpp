// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>

#include "tools/bench/report.h"

namespace brigade::tools {
namespace {

namespace json = boost::json;

json::object to_json(const LatencyHistogram& values) {
  json::array buckets;
  for (const LatencyHistogram::Bucket& bucket : values.buckets()) {
    buckets.push_back(json::array{bucket.low_s, bucket.high_s, bucket.count});
  }
  return {{"count", values.count()},       {"mean", values.mean()},
          {"min", values.min()},           {"p50", values.percentile(0.5)},
          {"p90", values.percentile(0.9)}, {"p99", values.percentile(0.99)},
          {"max", values.max()},           {"buckets", std::move(buckets)}};
}

json::object to_json(const Timeline& timeline) {
  json::array started;
  json::array ended;
  json::array refused;
  json::array tokens;
  for (const Timeline::Point& point : timeline.points()) {
    started.push_back(point.started);
    ended.push_back(point.ended);
    refused.push_back(point.refused);
    tokens.push_back(point.tokens);
  }
  return {{"seconds_per_point", timeline.width_s()},
          {"started", std::move(started)},
          {"ended", std::move(ended)},
          {"refused", std::move(refused)},
          {"output_tokens", std::move(tokens)}};
}

}  // namespace

std::string report_json(const Report& report) {
  const RunStats& stats = report.stats;
  const double seconds = stats.duration_s > 0 ? stats.duration_s : 1;
  json::object settings;
  for (const auto& [name, value] : report.settings)
    settings[name] = value;
  json::object errors;
  for (const auto& [kind, count] : stats.errors)
    errors[kind] = count;
  json::object out{
      {"url", report.url},
      {"model", report.model},
      {"settings", std::move(settings)},
      {"interrupted", report.interrupted},
      {"duration_s", stats.duration_s},
      {"requests",
       {{"complete", stats.complete},
        {"failed", stats.failed},
        {"refusals", stats.refused},
        {"abandoned", stats.abandoned},
        {"cut", stats.cut},
        {"good", stats.good},
        {"per_second", static_cast<double>(stats.complete) / seconds}}},
      {"tokens",
       {{"output", stats.output_tokens},
        {"prompt", stats.prompt_tokens},
        {"cached_prompt", stats.cached_tokens},
        {"output_per_second", static_cast<double>(stats.output_tokens) / seconds}}},
      {"retries", {{"taken", stats.retries_taken}, {"refused", stats.retries_refused}}},
      {"errors", std::move(errors)},
      {"refusal_s", to_json(stats.refusal)},
      {"retry_after_s", to_json(stats.retry_after)},
      {"timeline", to_json(stats.timeline)}};
  for (const NamedLatency& latency : latencies_of(stats))
    out[std::string(latency.key) + "_s"] = to_json(*latency.values);
  return json::serialize(out) + "\n";
}

}  // namespace brigade::tools
