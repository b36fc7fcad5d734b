// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/recorder.h"

#include <doctest/doctest.h>

#include "tools/bench/units.h"

namespace brigade::tools {
namespace {

Outcome complete(double due, double first, double last, std::uint64_t tokens) {
  return {.due_s = due,
          .sent_s = due + 0.01,
          .first_token_s = first,
          .last_token_s = last,
          .end_s = last,
          .output_tokens = tokens};
}

}  // namespace

TEST_CASE("latencies count from when a request was due, and a gap is shared by its tokens") {
  Recorder recorder;
  recorder.on_start(1);
  recorder.on_tokens(1.5, std::nullopt, 1);
  recorder.on_tokens(1.9, 0.4, 4);
  recorder.on_end(complete(1, 1.5, 1.9, 5), /*retry=*/false);
  const RunStats& stats = recorder.stats();
  CHECK(stats.complete == 1);
  CHECK(stats.output_tokens == 5);
  CHECK(stats.ttft.max() == doctest::Approx(0.5));
  CHECK(stats.e2e.max() == doctest::Approx(0.9));
  CHECK(stats.start_delay.max() == doctest::Approx(0.01));
  CHECK(stats.itl.count() == 4);
  CHECK(stats.itl.max() == doctest::Approx(0.1));
  CHECK(stats.duration_s == doctest::Approx(1.9));
}

TEST_CASE("a request is good when it keeps every limit, with its mean time per token") {
  const Result<Slo> slo = Slo::parse("ttft=500ms,itl=0.1s,e2e=2s");
  REQUIRE(slo.ok());
  CHECK(slo->met_by(complete(0, 0.4, 0.8, 5)));
  CHECK_FALSE(slo->met_by(complete(0, 0.6, 0.8, 5)));   // first token
  CHECK_FALSE(slo->met_by(complete(0, 0.4, 0.9, 5)));   // 125 ms a token
  CHECK_FALSE(slo->met_by(complete(0, 0.4, 2.1, 50)));  // the whole
  CHECK(slo->met_by(complete(0, 0.4, 0.4, 1)));         // nothing between one token
  Outcome failed = complete(0, 0.4, 0.8, 5);
  failed.end = Outcome::End::kFailed;
  CHECK_FALSE(slo->met_by(failed));
}

TEST_CASE("limits that are none are refused") {
  for (const char* text : {"ttft", "ttft=", "tpot=1s", "ttft=1s,ttft=2s", "itl=-1s", "itl=5 s"}) {
    CAPTURE(text);
    CHECK_FALSE(Slo::parse(text).ok());
  }
  REQUIRE(Slo::parse("").ok());
  CHECK(Slo::parse("")->empty());
}

TEST_CASE("refusals, failures and those who left are counted apart, and are no latencies") {
  Recorder recorder;
  Outcome outcome{.sent_s = 1, .end_s = 1.25};
  outcome.end = Outcome::End::kRefused;
  outcome.error = "HTTP 429 rate_limit_exceeded";
  outcome.retry_after_s = 3;
  recorder.on_end(outcome, /*retry=*/false);
  recorder.on_end(outcome, /*retry=*/true);
  recorder.on_end(complete(0, 1, 2, 3), /*retry=*/true);
  outcome.end = Outcome::End::kFailed;
  outcome.error = "the answer broke off";
  recorder.on_end(outcome, /*retry=*/false);
  outcome.end = Outcome::End::kAbandoned;
  recorder.on_end(outcome, /*retry=*/false);
  outcome.end = Outcome::End::kCut;
  recorder.on_end(outcome, /*retry=*/false);
  const RunStats& stats = recorder.stats();
  CHECK(stats.refused == 2);
  CHECK(stats.refusal.max() == doctest::Approx(0.25));
  CHECK(stats.retry_after.mean() == doctest::Approx(3));
  CHECK(stats.retries_taken == 1);
  CHECK(stats.retries_refused == 1);
  CHECK(stats.failed == 1);
  CHECK(stats.abandoned == 1);
  CHECK(stats.cut == 1);
  CHECK(stats.e2e.count() == 1);
  CHECK(stats.errors == std::map<std::string, std::uint64_t>{{"HTTP 429 rate_limit_exceeded", 2},
                                                             {"the answer broke off", 1}});
}

TEST_CASE("kinds of errors beyond fifty are one kind") {
  Recorder recorder;
  for (int i = 0; i < 80; ++i) {
    recorder.on_end({.end = Outcome::End::kFailed, .error = std::to_string(i)}, false);
  }
  CHECK(recorder.stats().errors.size() == 51);
  CHECK(recorder.stats().errors.at("others") == 30);
}

TEST_CASE("a timeline that is outgrown doubles its step and loses nothing") {
  Timeline timeline;
  for (int i = 0; i < 1000; ++i)
    timeline.at(i * 0.5 + 0.01).tokens += 2;
  timeline.at(0).started = 5;
  CHECK(timeline.points().size() <= Timeline::kMaxPoints);
  CHECK(timeline.width_s() == doctest::Approx(1.6));  // 500 s, above 600 x 0.8
  std::uint64_t tokens = 0;
  for (const Timeline::Point& point : timeline.points())
    tokens += point.tokens;
  CHECK(tokens == 2000);
  CHECK(timeline.points().front().started == 5);
  CHECK(timeline.points().front().tokens == 8);  // at 0.01, 0.51, 1.01 and 1.51 s
}

TEST_CASE("times are read with their unit, and written with three digits") {
  CHECK(*parse_seconds("200ms") == doctest::Approx(0.2));
  CHECK(*parse_seconds("1.5s") == doctest::Approx(1.5));
  CHECK(*parse_seconds("2m") == doctest::Approx(120));
  CHECK(*parse_seconds("1h") == doctest::Approx(3600));
  CHECK(*parse_seconds("3") == doctest::Approx(3));
  for (const char* text : {"", "s", "0", "-1s", "1d", "1 s", "nan", "inf", "700000s", "1e9h"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_seconds(text).ok());
  }
  CHECK(format_seconds(0.0000123) == "12.3 us");
  CHECK(format_seconds(0.00123) == "1.23 ms");
  CHECK(format_seconds(0.4567) == "457 ms");
  CHECK(format_seconds(12.345) == "12.3 s");
  CHECK(format_count(7) == "7");
  CHECK(format_count(7.25) == "7.25");
  CHECK(format_count(1234) == "1234");
  CHECK(format_count(1234567) == "1.23 M");
}

}  // namespace brigade::tools
