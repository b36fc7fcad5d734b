// SPDX-License-Identifier: Apache-2.0
#include "router/core/ledger.h"

#include <doctest/doctest.h>

#include <map>

#include "common/base/random.h"
#include "tests/router/core/support/fake_model.h"

namespace brigade::router {
namespace {

using std::chrono::seconds;
using testing::FakeTokenizer;

const auto kModel = testing::make_fake_model();

std::unique_ptr<LiveRequest> make_request(RequestId id, std::uint32_t max_tokens,
                                          TimePoint deadline = kNever) {
  auto request = std::make_unique<LiveRequest>();
  request->id = id;
  request->model = kModel;
  request->params.max_tokens = max_tokens;
  request->tokens = {5, 6};
  request->num_prompt = 2;
  request->prompt_scored = true;
  request->deadline = deadline;
  request->stream = std::make_unique<OutputStream>(kModel->tokenizer, request->params);
  return request;
}

}  // namespace

TEST_CASE("a request goes from queued to placed to ended, with one last output") {
  Ledger ledger;
  LiveRequest& request = ledger.accept(make_request(1, 2));
  ledger.place(request, 3);
  CHECK_FALSE(ledger.on_token(request, {.token = FakeTokenizer::kA}));
  CHECK(ledger.on_token(request, {.token = FakeTokenizer::kA + 1}));
  CHECK(ledger.find(1) == nullptr);
  const std::vector<Output> outputs = ledger.take_outputs();
  REQUIRE_EQ(outputs.size(), 2);
  CHECK(outputs[0].finish == wire::FinishReason::kNone);
  CHECK_EQ(outputs[0].text, "a");
  CHECK(outputs[1].finish == wire::FinishReason::kLength);
  CHECK_EQ(outputs[1].usage.prompt_tokens, 2);
  CHECK_EQ(outputs[1].usage.completion_tokens, 2);
  CHECK_EQ(ledger.counts().completed, 1);
}

TEST_CASE("a model's statistics have each request's times, tokens and end") {
  using std::chrono::milliseconds;
  Ledger ledger(2);
  const TimePoint start{seconds(100)};
  const auto at = [&](int ms) { ledger.set_now(start + milliseconds(ms)); };
  at(0);
  auto made = make_request(1, 3);
  made->model_index = 1;
  made->cached_tokens = 1;
  LiveRequest& request = ledger.accept(std::move(made));
  at(40);
  ledger.place(request, 0);
  at(90);
  CHECK_FALSE(ledger.on_token(request, {.token = FakeTokenizer::kA}));
  ledger.unplace_preempted(request);
  at(100);
  ledger.place(request, 0);  // waits again, but is counted once
  at(390);
  CHECK_FALSE(ledger.on_token(request, {.token = FakeTokenizer::kA}));
  at(400);
  CHECK(ledger.on_token(request, {.token = FakeTokenizer::kA}));
  ledger.refuse({.id = 2}, 1, resource_exhausted("full"), 1);
  ledger.refuse({.id = 3}, std::nullopt, not_found("none"), 0);
  LiveRequest& late = ledger.accept(make_request(4, 3));
  at(1400);
  ledger.end(late, wire::FinishReason::kError, deadline_exceeded("late"));

  const ModelStats& stats = ledger.stats()[1];
  CHECK(stats.queue_s.sum() == doctest::Approx(0.04));
  CHECK(stats.time_to_first_token_s.sum() == doctest::Approx(0.09));
  CHECK(stats.inter_token_s.sum() == doctest::Approx(0.31));
  CHECK(stats.request_s.sum() == doctest::Approx(0.4));
  CHECK_EQ(stats.total_prompt_tokens, 2);
  CHECK_EQ(stats.total_cached_tokens, 1);
  CHECK_EQ(stats.total_generation_tokens, 3);
  CHECK_EQ(stats.preempted, 1);
  CHECK_EQ(stats.finished[static_cast<std::size_t>(wire::FinishReason::kLength)], 1);
  CHECK_EQ(stats.refused[static_cast<std::size_t>(StatusCode::kResourceExhausted)], 1);
  CHECK_EQ(ledger.num_unknown_model(), 1);
  const ModelStats& other = ledger.stats()[0];
  CHECK_EQ(other.failed[static_cast<std::size_t>(StatusCode::kDeadlineExceeded)], 1);
  CHECK(other.request_s.sum() == doctest::Approx(1));
  CHECK_EQ(other.total_prompt_tokens, 0);
  std::uint64_t observed = 0;
  for (const std::uint64_t count : stats.inter_token_s.counts())
    observed += count;
  CHECK_EQ(observed, 2);
}

TEST_CASE("the scored prompt goes out once, with the first token") {
  Ledger ledger;
  auto made = make_request(1, 5);
  made->prompt_scored = false;
  LiveRequest& request = ledger.accept(std::move(made));
  ledger.place(request, 0);
  request.prompt_scores = {{.token = 5}, {.token = 6, .logprob = -1.0F}};
  ledger.on_prompt_scored(request);
  ledger.on_token(request, {.token = FakeTokenizer::kA});
  ledger.on_token(request, {.token = FakeTokenizer::kA});
  const std::vector<Output> outputs = ledger.take_outputs();
  CHECK_EQ(outputs[0].prompt_tokens.size(), 2);
  CHECK(outputs[1].prompt_tokens.empty());
}

TEST_CASE("a prompt that was scored in part is scored anew after the request has moved") {
  Ledger ledger;
  auto made = make_request(1, 5);
  made->prompt_scored = false;
  LiveRequest& request = ledger.accept(std::move(made));
  ledger.place(request, 0);
  request.prompt_scores = {{.token = 5}};
  ledger.unplace_failed_over(request);
  CHECK(request.prompt_scores.empty());
}

TEST_CASE("requests expire in order of their deadlines") {
  Ledger ledger;
  const TimePoint start{seconds(10)};
  ledger.accept(make_request(1, 1, start + seconds(5)));
  ledger.accept(make_request(2, 1, start + seconds(2)));
  CHECK(ledger.next_deadline() == start + seconds(2));
  CHECK(ledger.expired(start + seconds(1)).empty());
  const auto late = ledger.expired(start + seconds(5));
  REQUIRE_EQ(late.size(), 2);
  CHECK_EQ(late[0]->id, 2);
}

TEST_CASE("counts add up and each request ends once under random events") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t bound) { return random_bits(seed, draw++) % bound; };
    Ledger ledger;
    std::map<RequestId, int> ends;
    RequestId next = 1;
    const auto count_ends = [&] {
      for (const Output& output : ledger.take_outputs()) {
        if (output.finish != wire::FinishReason::kNone) ++ends[output.request];
      }
    };
    for (int i = 0; i < 500; ++i) {
      const RequestId id = 1 + below(next);
      LiveRequest* request = ledger.find(id);
      if (request == nullptr) {
        if (below(3) == 0)
          ledger.accept(make_request(next++, 1 + static_cast<std::uint32_t>(below(5))));
      } else if (request->phase == RequestPhase::kQueued) {
        if (below(4) == 0) {
          ledger.end(*request, wire::FinishReason::kCancelled, cancelled("x"));
        } else {
          ledger.place(*request, 0);
        }
      } else {
        switch (below(6)) {
          case 0:
            ledger.unplace_failed_over(*request);
            break;
          case 1:
            ledger.end(*request, wire::FinishReason::kError, unavailable("x"));
            break;
          default:
            ledger.on_token(*request, {.token = static_cast<std::int32_t>(below(64))});
        }
      }
      ledger.audit();
      count_ends();
    }
    for (RequestId id = 1; id < next; ++id)
      CHECK_EQ(ends[id], ledger.find(id) == nullptr ? 1 : 0);
  }
}

}  // namespace brigade::router
