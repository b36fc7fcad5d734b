// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/metrics_text.h"

#include <dirent.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "common/base/status.h"

namespace brigade::router {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double kMicro = 1e-6;

ClientMetric::Histogram to_histogram(const Histogram& histogram) {
  ClientMetric::Histogram out;
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
    cumulative += histogram.counts()[i];
    const double edge = i < histogram.edges().size() ? histogram.edges()[i]
                                                     : std::numeric_limits<double>::infinity();
    out.bucket.push_back({.cumulative_count = cumulative, .upper_bound = edge});
  }
  out.sample_count = cumulative;
  out.sample_sum = histogram.sum();
  return out;
}

/// Metrics under their names, in the order of their first ones.
class Families {
 public:
  void counter(const std::string& name, const char* help, Labels labels, double value) {
    add(name, help, MetricType::Counter, std::move(labels)).counter.value = value;
  }
  void gauge(const std::string& name, const char* help, Labels labels, double value) {
    add(name, help, MetricType::Gauge, std::move(labels)).gauge.value = value;
  }
  void histogram(const std::string& name, const char* help, Labels labels,
                 const Histogram& values) {
    add(name, help, MetricType::Histogram, std::move(labels)).histogram = to_histogram(values);
  }
  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families_);
    return out.str();
  }

 private:
  ClientMetric& add(const std::string& name, const char* help, MetricType type, Labels labels) {
    // Callers add the metrics of a family in turns (model by model), so it need not be the last.
    auto family = families_.begin();
    while (family != families_.end() && family->name != name)
      ++family;
    if (family == families_.end()) {
      family = families_.insert(family, MetricFamily{name, help, type, {}});
    }
    ClientMetric& metric = family->metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }

  std::vector<MetricFamily> families_;
};

double as_double(std::uint64_t value) {
  return static_cast<double>(value);
}

void add_model(Families& out, const std::string& name, const ModelStats& stats) {
  const Labels model = {{"model", name}};
  const auto with = [&name](const char* label, std::string_view value) {
    return Labels{{"model", name}, {label, std::string(value)}};
  };
  out.histogram("brigade_time_to_first_token_seconds",
                "From acceptance to the first token of a request.", model,
                stats.time_to_first_token_s);
  out.histogram("brigade_inter_token_latency_seconds", "From one token of a request to the next.",
                model, stats.inter_token_s);
  out.histogram("brigade_request_latency_seconds", "From acceptance to the end of a request.",
                model, stats.request_s);
  out.histogram("brigade_request_queue_time_seconds",
                "From acceptance to the first placement on a replica.", model, stats.queue_s);
  out.histogram("brigade_request_prompt_tokens", "Tokens of a request's prompt.", model,
                stats.prompt_tokens);
  out.histogram("brigade_request_generation_tokens", "Tokens of a request's answer.", model,
                stats.generation_tokens);
  out.counter("brigade_prompt_tokens_total",
              "Tokens of prompts that were computed or found in the prefix cache.", model,
              as_double(stats.total_prompt_tokens));
  out.counter("brigade_cached_prompt_tokens_total",
              "Of the prompt tokens, those found in the prefix cache.", model,
              as_double(stats.total_cached_tokens));
  out.counter("brigade_generation_tokens_total", "Tokens generated.", model,
              as_double(stats.total_generation_tokens));
  for (std::size_t i = 1; i < stats.finished.size(); ++i) {
    out.counter("brigade_requests_finished_total", "Accepted requests that have ended, by how.",
                with("reason", wire::to_string(static_cast<wire::FinishReason>(i))),
                as_double(stats.finished[i]));
  }
  for (std::size_t i = 1; i < stats.failed.size(); ++i) {
    const std::string_view code = to_string(static_cast<StatusCode>(i));
    out.counter("brigade_request_errors_total",
                "Accepted requests that ended with an error, by kind.", with("code", code),
                as_double(stats.failed[i]));
    out.counter("brigade_requests_refused_total", "Requests that were not accepted, by kind.",
                with("code", code), as_double(stats.refused[i]));
  }
  out.counter("brigade_preemptions_total",
              "Times that a request lost its place because KV memory ran out.", model,
              as_double(stats.preempted));
  out.counter("brigade_fail_overs_total", "Times that a request lost its replica.", model,
              as_double(stats.failed_over));
  out.gauge("brigade_requests_running", "Requests placed on a replica.", model,
            as_double(stats.running));
  out.gauge("brigade_requests_waiting", "Requests in the queue.", model, as_double(stats.waiting));
}

void add_rank(Families& out, const ReplicaStatus& replica, const RankStatus& rank) {
  const Labels labels = {{"model", replica.model},
                         {"replica", std::to_string(replica.id)},
                         {"stage", std::to_string(rank.pp_stage)},
                         {"rank", std::to_string(rank.tp_rank)},
                         {"worker", rank.worker}};
  const std::pair<const char*, std::uint64_t> times[] = {{"compute", rank.times.compute_us},
                                                         {"wait", rank.times.wait_us},
                                                         {"link", rank.times.link_us}};
  for (const auto& [what, us] : times) {
    Labels with_what = labels;
    with_what.push_back({"what", what});
    out.counter("brigade_rank_seconds_total",
                "Time of a rank in steps: compute (sums over its stage included), wait for the "
                "stage before, link (handing on). The bubble is wait over all three.",
                std::move(with_what), as_double(us) * kMicro);
  }
  out.gauge("brigade_rank_busy_ratio", "Part of the last status window that a rank computed.",
            labels, rank.busy_fraction);
  out.gauge("brigade_rank_bubble_ratio",
            "Part of the last status window that a rank's steps waited for another stage.", labels,
            rank.bubble_fraction);
}

void add_replica(Families& out, const ReplicaStatus& replica) {
  const Labels labels = {{"model", replica.model}, {"replica", std::to_string(replica.id)}};
  const auto with = [&](const char* label, const char* value) {
    Labels more = labels;
    more.push_back({label, value});
    return more;
  };
  out.gauge("brigade_replica_ready", "1 when the replica takes requests.", labels,
            replica.state == "ready" ? 1 : 0);
  out.gauge("brigade_kv_blocks", "KV blocks of 16 tokens.", with("kind", "total"),
            as_double(replica.kv_total));
  out.gauge("brigade_kv_blocks", "", with("kind", "used"), as_double(replica.kv_used));
  out.gauge("brigade_kv_blocks", "", with("kind", "cached"), as_double(replica.kv_cached));
  out.counter("brigade_steps_total", "Steps that have ended.", labels, as_double(replica.steps));
  for (const RankStatus& rank : replica.ranks)
    add_rank(out, replica, rank);
}

void add_door(Families& out, const DoorMetrics& door) {
  for (const auto& [key, count] : door.counts.requests) {
    out.counter("brigade_http_requests_total",
                "HTTP requests that have ended; status 0: the client was gone before an answer.",
                {{"path", std::string(key.first)}, {"status", std::to_string(key.second)}},
                as_double(count));
  }
  for (std::size_t i = 0; i < door.refusals.size(); ++i) {
    out.counter("brigade_http_refusals_total", "Requests that the keys did not let in, by reason.",
                {{"reason", std::string(kRefusalNames[i])}}, as_double(door.refusals[i]));
  }
  out.histogram("brigade_token_delivery_seconds",
                "From the arrival of a step's result at the router to the moment that the system "
                "has taken the client's bytes of it.",
                {}, door.counts.delivery_s);
  out.gauge("brigade_http_connections", "Open connections.", {}, as_double(door.open_connections));
  out.counter("brigade_http_connections_total", "Connections taken.", {},
              as_double(door.counts.connections));
  const std::pair<const char*, std::uint64_t> dropped[] = {
      {"limit", door.counts.connections_refused},
      {"address", door.counts.peers_refused},
      {"tls_handshake", door.counts.handshakes_failed},
      {"slow", door.counts.slow_clients}};
  for (const auto& [reason, count] : dropped) {
    out.counter("brigade_http_connections_dropped_total",
                "Connections refused or cut: over the limit, from an address not allowed, without "
                "a TLS handshake, or of a client that is too slow.",
                {{"reason", reason}}, as_double(count));
  }
  out.counter("brigade_http_sent_bytes_total", "Bytes of answers, before TLS.", {},
              as_double(door.counts.bytes_sent));
  out.counter("brigade_access_log_dropped_total", "Lines that the access log had no room for.", {},
              as_double(door.access_log_dropped));
}

/// The names that Prometheus's own clients give a process.
void add_process(Families& out) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicro;
  };
  out.counter("process_cpu_seconds_total", "CPU time of the router.", {},
              seconds(usage.ru_utime) + seconds(usage.ru_stime));
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  out.gauge("process_resident_memory_bytes", "Resident memory of the router.", {},
            as_double(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  double open = 0;
  if (DIR* folder = opendir("/proc/self/fd")) {
    while (readdir(folder) != nullptr)
      ++open;
    closedir(folder);
    open -= 3;  // ".", "..", and the one that reads
  }
  out.gauge("process_open_fds", "Open descriptors of the router.", {}, open);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  out.gauge("process_max_fds", "Descriptors that it may open.", {}, as_double(limit.rlim_cur));
}

/// Only what means the same there.
void add_vllm(Families& out, const std::string& name, const ModelStats& stats, double kv_usage) {
  const Labels model = {{"model_name", name}, {"engine", "0"}};
  out.histogram("vllm:time_to_first_token_seconds", "As vLLM.", model, stats.time_to_first_token_s);
  out.histogram("vllm:inter_token_latency_seconds", "As vLLM.", model, stats.inter_token_s);
  out.histogram("vllm:e2e_request_latency_seconds", "As vLLM.", model, stats.request_s);
  out.histogram("vllm:request_queue_time_seconds", "As vLLM.", model, stats.queue_s);
  out.histogram("vllm:request_prompt_tokens", "As vLLM.", model, stats.prompt_tokens);
  out.histogram("vllm:request_generation_tokens", "As vLLM.", model, stats.generation_tokens);
  out.counter("vllm:prompt_tokens_total", "As vLLM.", model, as_double(stats.total_prompt_tokens));
  out.counter("vllm:prefix_cache_queries_total", "As vLLM, in tokens.", model,
              as_double(stats.total_prompt_tokens));
  out.counter("vllm:prefix_cache_hits_total", "As vLLM, in tokens.", model,
              as_double(stats.total_cached_tokens));
  out.counter("vllm:generation_tokens_total", "As vLLM.", model,
              as_double(stats.total_generation_tokens));
  out.counter("vllm:num_preemptions_total", "As vLLM.", model, as_double(stats.preempted));
  out.gauge("vllm:num_requests_running", "As vLLM.", model, as_double(stats.running));
  out.gauge("vllm:num_requests_waiting", "As vLLM.", model, as_double(stats.waiting));
  out.gauge("vllm:kv_cache_usage_perc", "As vLLM: from 0 to 1.", model, kv_usage);
  const std::pair<const char*, wire::FinishReason> reasons[] = {
      {"stop", wire::FinishReason::kStop},
      {"length", wire::FinishReason::kLength},
      {"abort", wire::FinishReason::kCancelled}};
  for (const auto& [word, reason] : reasons) {
    Labels with = model;
    with.push_back({"finished_reason", word});
    out.counter("vllm:request_success_total", "As vLLM.", std::move(with),
                as_double(stats.finished[static_cast<std::size_t>(reason)]));
  }
}

double kv_usage_of(const RouterStatus& status, const std::string& model) {
  std::uint64_t used = 0;
  std::uint64_t total = 0;
  for (const ReplicaStatus& replica : status.replicas) {
    if (replica.model != model) continue;
    used += replica.kv_used;
    total += replica.kv_total;
  }
  return total == 0 ? 0 : as_double(used) / as_double(total);
}

}  // namespace

std::string metrics_text(const RouterMetrics& metrics, const DoorMetrics& door,
                         const std::vector<std::string>& names, bool vllm) {
  Families out;
  for (std::size_t i = 0; i < names.size(); ++i)
    add_model(out, names[i], metrics.models[i]);
  for (const ReplicaStatus& replica : metrics.status.replicas)
    add_replica(out, replica);
  out.gauge("brigade_idle_workers", "Workers that stand by.", {},
            as_double(metrics.status.idle_workers));
  out.gauge("brigade_queue_tokens", "Tokens of the requests in the queue.", {},
            as_double(metrics.status.queued_tokens));
  out.counter("brigade_unknown_model_total", "Requests that named no model that is served.", {},
              as_double(metrics.unknown_model));
  add_door(out, door);
  add_process(out);
  for (std::size_t i = 0; vllm && i < names.size(); ++i) {
    add_vllm(out, names[i], metrics.models[i], kv_usage_of(metrics.status, names[i]));
  }
  return out.text();
}

}  // namespace brigade::router
