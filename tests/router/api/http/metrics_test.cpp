// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/metrics_text.h"

#include <doctest/doctest.h>

#include <set>

#include "router/api/http/access_log.h"
#include "router/api/http/trace_context.h"

using namespace brigade;
using namespace brigade::router;

namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

RouterMetrics sample() {
  RouterMetrics metrics;
  ModelStats stats;
  stats.time_to_first_token_s.observe(0.03);
  stats.time_to_first_token_s.observe(1e9);
  stats.finished[static_cast<std::size_t>(wire::FinishReason::kStop)] = 7;
  stats.running = 2;
  metrics.models = {stats, stats};
  ReplicaStatus replica{.id = 3, .model = "a", .state = "ready", .kv_total = 10, .kv_used = 4};
  replica.ranks.push_back({.worker = "w \"0\"\n", .pp_stage = 1, .times = {.wait_us = 500'000}});
  metrics.status.replicas.push_back(replica);
  return metrics;
}

std::string text_of(bool vllm) {
  DoorMetrics door;
  door.counts.requests[{"/v1/models", 200}] = 5;
  door.refusals[static_cast<std::size_t>(Refusal::kTokensPerMinute)] = 9;
  return metrics_text(sample(), door, {"a", "b"}, vllm);
}

}  // namespace

TEST_CASE("metrics tell models, replicas, ranks and the door by name and label") {
  const std::string text = text_of(/*vllm=*/false);
  CHECK(has(text, "brigade_time_to_first_token_seconds_bucket{model=\"a\",le=\"0.025\"} 0\n"));
  CHECK(has(text, "brigade_time_to_first_token_seconds_bucket{model=\"a\",le=\"0.05\"} 1\n"));
  CHECK(has(text, "brigade_time_to_first_token_seconds_bucket{model=\"b\",le=\"+Inf\"} 2\n"));
  CHECK(has(text, "brigade_time_to_first_token_seconds_count{model=\"a\"} 2\n"));
  CHECK(has(text, "brigade_requests_finished_total{model=\"a\",reason=\"stop\"} 7\n"));
  CHECK(has(text, "brigade_kv_blocks{model=\"a\",replica=\"3\",kind=\"used\"} 4\n"));
  CHECK(has(text, "rank=\"0\",worker=\"w \\\"0\\\"\\n\",what=\"wait\"} 0.5\n"));
  CHECK(has(text, "brigade_http_requests_total{path=\"/v1/models\",status=\"200\"} 5\n"));
  CHECK(has(text, "brigade_http_refusals_total{reason=\"tokens_per_minute\"} 9\n"));
  CHECK(has(text, "process_resident_memory_bytes "));
  CHECK_FALSE(has(text, "vllm:"));
}

TEST_CASE("vLLM's names come on request, and each family once") {
  const std::string text = text_of(/*vllm=*/true);
  CHECK(
      has(text,
          "vllm:request_success_total{model_name=\"a\",engine=\"0\",finished_reason=\"stop\"} 7"));
  CHECK(has(text, "vllm:num_requests_running{model_name=\"b\",engine=\"0\"} 2"));
  CHECK(has(text, "vllm:kv_cache_usage_perc{model_name=\"a\",engine=\"0\"} 0.4"));
  std::set<std::string> seen;
  std::size_t at = 0;
  while ((at = text.find("# TYPE ", at)) != std::string::npos) {
    const std::size_t end = text.find('\n', at);
    CHECK(seen.insert(text.substr(at, end - at)).second);
    at = end;
  }
  CHECK(seen.size() > 40);
}

TEST_CASE("a traceparent is taken when it is well formed, and nothing else") {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto taken = [](const std::string& value) {
    return traceparent_of({.fields = {{"traceparent", value}}});
  };
  CHECK(taken(good) == good);
  CHECK(trace_id_of(good) == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(trace_id_of("").empty());
  CHECK(taken("01" + good.substr(2) + "-more") == "01" + good.substr(2));
  CHECK(traceparent_of({}).empty());
  for (const std::string& bad :
       {std::string(), good + "-more", good + "0", good.substr(1), "ff" + good.substr(2),
        "01" + good.substr(2) + "more", "00_" + good.substr(3), "0g" + good.substr(2),
        std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
        std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e473\"-00f067aa0ba902b7-01")}) {
    CAPTURE(bad);
    CHECK(taken(bad).empty());
  }
}

TEST_CASE(
    "a line of the access log is JSON with what is known, and no prompt unless there is one") {
  RequestRecord record{.request_id = "req-1",
                       .traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                       .remote = "::1",
                       .method = "POST",
                       .route = "/v1/completions"};
  record.key_id = "0123abcd";
  record.tenant = "web";
  record.status = 200;
  record.started = Clock::now();
  const TimePoint ended = record.started + std::chrono::microseconds(12500);
  CHECK(access_line(record, ended, 1'700'000'000'007) ==
        R"({"time":"2023-11-14T22:13:20.007Z","id":"req-1",)"
        R"("trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","remote":"::1","method":"POST",)"
        R"("path":"/v1/completions","status":200,"key":"0123abcd","tenant":"web",)"
        R"("total_ms":12.5,"bytes":0})");
  record.model = "m";
  record.prompt_tokens = 3;
  record.finish_reason = "stop";
  record.first_token = record.started + std::chrono::milliseconds(2);
  record.prompt = "say \"hi\"\n";
  const std::string line = access_line(record, ended, 1'700'000'000'007);
  CHECK(has(line, R"("model":"m","prompt_tokens":3,"completion_tokens":0,"cached_tokens":0,)"
                  R"("finish_reason":"stop","first_token_ms":2)"));
  CHECK(line.ends_with(R"("prompt":"say \"hi\"\n"})"));
  record.cut = true;
  CHECK(has(access_line(record, ended, 0), R"("finish_reason":"client_gone")"));
  record.prompt = std::string(1 << 20, 'x');
  CHECK(access_line(record, ended, 0).size() < 20'000);
}
