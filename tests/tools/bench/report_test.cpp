// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/report.h"

#include <doctest/doctest.h>

#include <boost/json.hpp>

#include "tools/bench/request_maker.h"

namespace brigade::tools {
namespace {

namespace json = boost::json;

Report sample_report() {
  Recorder recorder(*Slo::parse("e2e=150.5ms"));
  for (int i = 1; i <= 200; ++i) {
    const double first = i * 0.01 + 0.05;
    recorder.on_start(i * 0.01);
    recorder.on_tokens(first, std::nullopt, 1);
    recorder.on_tokens(first + 0.001 * i, 0.001 * i, 1);
    recorder.on_end({.due_s = i * 0.01,
                     .sent_s = i * 0.01,
                     .first_token_s = first,
                     .last_token_s = first + 0.001 * i,
                     .end_s = first + 0.001 * i,
                     .prompt_tokens = 10,
                     .output_tokens = 2},
                    /*retry=*/false);
  }
  recorder.on_end({.end = Outcome::End::kRefused,
                   .error = "HTTP 429 <b>",
                   .retry_after_s = 2,
                   .due_s = 1,
                   .sent_s = 1,
                   .end_s = 1.001},
                  /*retry=*/false);
  return {.url = "http://127.0.0.1:8000",
          .model = "m & n",
          .settings = {{"load", "8 at a time"}},
          .slo = *Slo::parse("e2e=150.5ms"),
          .stats = recorder.stats()};
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("the report for people has the counts, the percentiles and a histogram") {
  const std::string text = report_text(sample_report());
  CAPTURE(text);
  CHECK(text.find("200 complete in 2.25 s") != std::string::npos);
  CHECK(text.find("0 failed, 1 refusals") != std::string::npos);
  CHECK(text.find("Retry-After 2 to 2 s") != std::string::npos);
  CHECK(text.find("goodput     100 within the limits") != std::string::npos);
  CHECK(text.find("1 x HTTP 429 <b>") != std::string::npos);
  // Gaps of 1 to 200 ms: their median and their largest.
  const std::size_t row = text.find("ITL ");
  REQUIRE(row != std::string::npos);
  const std::string itl = text.substr(row, text.find('\n', row) - row);
  CHECK(itl.find(" 100 ms") != std::string::npos);
  CHECK(itl.find(" 200 ms") != std::string::npos);
  CHECK(count_of(text, "####") >= 10);
}

TEST_CASE("the report for programs is JSON with every number") {
  const json::value report = json::parse(report_json(sample_report()));
  CHECK(report.at("requests").at("complete").as_int64() == 200);
  CHECK(report.at("requests").at("good").as_int64() == 100);
  CHECK(report.at("requests").at("refusals").as_int64() == 1);
  CHECK(report.at("tokens").at("output").as_int64() == 400);
  CHECK(report.at("errors").at("HTTP 429 <b>").as_int64() == 1);
  CHECK(report.at("retry_after_s").at("max").as_double() == 2);
  CHECK(report.at("itl_s").at("p50").as_double() == doctest::Approx(0.1).epsilon(0.01));
  std::int64_t count = 0;
  for (const json::value& bucket : report.at("itl_s").at("buckets").as_array())
    count += bucket.as_array().at(2).as_int64();
  CHECK(count == 200);
}

TEST_CASE("the page has its plots in it, nothing from elsewhere, and escapes what it shows") {
  const std::string page = report_html(sample_report());
  CHECK(count_of(page, "<svg") == 6);  // three latencies, three over time
  CHECK(count_of(page, "<svg") == count_of(page, "</svg>"));
  for (const char* none : {"<script", "src=", "href=", "@import", "<b>", "nan", "inf\""}) {
    CAPTURE(none);
    CHECK(page.find(none) == std::string::npos);
  }
  CHECK(page.find("m &amp; n") != std::string::npos);
  CHECK(page.find("HTTP 429 &lt;b&gt;") != std::string::npos);
}

TEST_CASE("reports of a run in which nothing was completed are whole") {
  const Report report{.url = "u", .model = "m", .interrupted = true};
  CHECK(report_text(report).find("0 complete") != std::string::npos);
  CHECK(report_text(report).find("interrupted") != std::string::npos);
  CHECK(json::parse(report_json(report)).at("interrupted").as_bool());
  CHECK(report_html(report).ends_with("</body></html>\n"));
}

TEST_CASE("a request asks for exactly what is planned, in ids or in words") {
  const Vocabulary vocabulary{.ids = {40, 50}, .words = {" to", " be"}, .tokens_per_word = 1};
  const PlannedRequest planned{.index = 3, .prompt_tokens = 3, .output_tokens = 7};
  const auto body_of = [&](bool chat, const std::string& start) {
    const RequestMaker maker({.host = "::1", .port = "80", .api_key = "k"}, vocabulary,
                             {.model = "m", .chat = chat, .seed = 5});
    REQUIRE(maker.num_words() == 2);
    const std::string request = maker.make(planned, {1, 0, 1});
    CHECK(request.starts_with(start + " HTTP/1.1\r\nHost: [::1]:80\r\n"));
    CHECK(request.find("\r\nAuthorization: Bearer k\r\n") != std::string::npos);
    const std::size_t end = request.find("\r\n\r\n") + 4;
    CHECK(request.find("\r\nContent-Length: " + std::to_string(request.size() - end) + "\r\n") !=
          std::string::npos);
    return json::parse(request.substr(end));
  };
  const json::value plain = body_of(false, "POST /v1/completions");
  CHECK(plain.at("prompt") == json::value(json::array{50, 40, 50}));
  CHECK(plain.at("max_tokens").as_int64() == 7);
  CHECK(plain.at("seed").as_int64() == 8);
  CHECK(plain.at("ignore_eos").as_bool());
  CHECK(plain.at("stream_options").at("continuous_usage_stats").as_bool());
  const json::value chat = body_of(true, "POST /v1/chat/completions");
  CHECK(chat.at("messages").as_array().at(0).at("content").as_string() == " be to be");
}

}  // namespace brigade::tools
