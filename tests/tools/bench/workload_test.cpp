// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/workload.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace brigade::tools {
namespace {

std::vector<PlannedRequest> all_of(Workload workload) {
  std::vector<PlannedRequest> requests;
  while (auto request = workload.next())
    requests.push_back(*request);
  return requests;
}

}  // namespace

TEST_CASE("Poisson arrivals have their rate, and gaps whose deviation is their mean") {
  Arrivals arrivals(/*rate=*/50, /*burst=*/1, /*seed=*/3);
  constexpr int kCount = 20'000;
  CHECK(arrivals.next() == 0);
  double last = 0;
  double squares = 0;
  for (int i = 1; i < kCount; ++i) {
    const double at = arrivals.next();
    REQUIRE(at >= last);
    squares += (at - last) * (at - last);
    last = at;
  }
  const double mean = last / (kCount - 1);
  CHECK(std::abs(mean * 50 - 1) < 0.03);
  const double deviation = std::sqrt(squares / (kCount - 1) - mean * mean);
  CHECK(std::abs(deviation / mean - 1) < 0.05);
}

TEST_CASE("bursts come together, and at the same rate in the mean") {
  Arrivals arrivals(/*rate=*/50, /*burst=*/10, /*seed=*/3);
  std::map<double, int> at;
  double last = 0;
  for (int i = 0; i < 20'000; ++i)
    ++at[last = arrivals.next()];
  CHECK(at.size() == 2000);
  for (const auto& [time, count] : at)
    CHECK(count == 10);
  CHECK(std::abs(20'000 / last / 50 - 1) < 0.1);
}

TEST_CASE("a workload is the same for the same seed, and another for another") {
  WorkloadOptions options{.prompt_tokens = *Lengths::parse("1..1000"), .num_requests = 50};
  const auto first = all_of(Workload(options));
  const auto again = all_of(Workload(options));
  options.seed = 2;
  const auto other = all_of(Workload(options));
  REQUIRE(first.size() == 50);
  const auto lengths = [](const std::vector<PlannedRequest>& requests) {
    std::vector<std::uint32_t> out;
    for (const PlannedRequest& request : requests)
      out.push_back(request.prompt_tokens);
    return out;
  };
  CHECK(lengths(first) == lengths(again));
  CHECK(lengths(first) != lengths(other));
}

TEST_CASE("prompts of a group share their prefix and nothing else, others nothing") {
  const WorkloadOptions options{.prompt_tokens = Lengths::always(30),
                                .shared_prefix = 20,
                                .prefix_groups = 3,
                                .num_requests = 60};
  const Workload workload(options);
  std::map<std::uint32_t, std::set<std::vector<std::uint32_t>>> prefixes;
  std::set<std::vector<std::uint32_t>> prompts;
  for (const PlannedRequest& request : all_of(workload)) {
    const auto prompt = workload.prompt(request, /*num_words=*/200);
    REQUIRE(prompt.size() == 30);
    CHECK(std::ranges::all_of(prompt, [](std::uint32_t word) { return word < 200; }));
    REQUIRE(request.prefix_group);
    prefixes[*request.prefix_group].insert({prompt.begin(), prompt.begin() + 20});
    prompts.insert({prompt.begin() + 20, prompt.end()});
  }
  CHECK(prefixes.size() == 3);
  std::set<std::vector<std::uint32_t>> distinct;
  for (const auto& [group, prefix] : prefixes) {
    CHECK(prefix.size() == 1);
    distinct.insert(*prefix.begin());
  }
  CHECK(distinct.size() == 3);
  CHECK(prompts.size() == 60);
}

TEST_CASE("a prompt no longer than the shared prefix keeps a last token of its own") {
  const Workload workload(
      {.prompt_tokens = Lengths::always(5), .shared_prefix = 20, .num_requests = 2});
  const auto requests = all_of(workload);
  const auto first = workload.prompt(requests[0], 1'000'000);
  const auto second = workload.prompt(requests[1], 1'000'000);
  CHECK(std::equal(first.begin(), first.end() - 1, second.begin()));
  CHECK(first.back() != second.back());
}

TEST_CASE("the part that is abandoned is, anywhere from its start to before its end") {
  const auto requests = all_of(
      Workload({.output_tokens = Lengths::always(10), .abandon = 0.25, .num_requests = 4000}));
  std::map<std::uint32_t, int> after;
  for (const PlannedRequest& request : requests) {
    if (request.abandon_after) ++after[*request.abandon_after];
  }
  int sum = 0;
  for (const auto& [tokens, count] : after)
    sum += count;
  CHECK(std::abs(sum - 1000) < 110);  // four deviations
  CHECK(after.size() == 10);
  CHECK(after.rbegin()->first == 9);
}

TEST_CASE("a trace is sorted by time, begins at zero, and ends where it ends") {
  const auto lines = parse_trace(
      "{\"time\": 7.5, \"prompt_tokens\": 3, \"output_tokens\": 4}\n\n"
      "{\"time\": 5, \"prompt_tokens\": 1, \"output_tokens\": 2, \"prefix_group\": 9}\r\n");
  REQUIRE(lines.ok());
  Workload workload({.trace = *lines});
  CHECK(workload.open_loop());
  CHECK(workload.size() == 2);
  const auto requests = all_of(workload);
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].due_s == 0);
  CHECK(requests[0].prompt_tokens == 1);
  CHECK(requests[0].prefix_group == 9U);
  CHECK(requests[1].due_s == 2.5);
  CHECK(requests[1].output_tokens == 4);
  CHECK_FALSE(requests[1].prefix_group);
}

TEST_CASE("a trace with a mistake is refused with its line") {
  const std::string good = "{\"time\": 0, \"prompt_tokens\": 1, \"output_tokens\": 1}\n";
  for (const char* bad :
       {"[]", "{", "{\"time\": -1, \"prompt_tokens\": 1, \"output_tokens\": 1}",
        "{\"time\": \"0\", \"prompt_tokens\": 1, \"output_tokens\": 1}",
        "{\"time\": 0, \"prompt_tokens\": 0, \"output_tokens\": 1}",
        "{\"time\": 0, \"prompt_tokens\": 1}",
        "{\"time\": 0, \"prompt_tokens\": 1.5, \"output_tokens\": 1}",
        "{\"time\": 0, \"prompt_tokens\": 1, \"output_tokens\": 1, \"prefix_group\": -1}"}) {
    CAPTURE(bad);
    const auto lines = parse_trace(good + bad);
    REQUIRE_FALSE(lines.ok());
    CHECK(lines.status().message().starts_with("line 2: "));
  }
  CHECK_FALSE(parse_trace("\n \n").ok());
}

}  // namespace brigade::tools
