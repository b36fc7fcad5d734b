// SPDX-License-Identifier: Apache-2.0
#include "router/core/limits.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "tests/router/core/support/fake_model.h"

namespace brigade::router {
namespace {

Request good_request() {
  Request request{.id = 1, .tenant = "t", .model = "fake", .prompt = {5, 6, 7}};
  request.params.max_tokens = 10;
  return request;
}

struct Case {
  const char* what;  ///< that the message must hold
  std::function<void(Request&)> spoil;
};

}  // namespace

TEST_CASE("what is wrong with a request is named with its field and value") {
  const auto model = testing::make_fake_model("fake", 100);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Case> cases = {
      {"prompt: it is empty", [](Request& r) { r.prompt.clear(); }},
      {"prompt[1]: token id 64 is outside the vocabulary of 64",
       [](Request& r) { r.prompt[1] = 64; }},
      {"prompt[0]: token id -1", [](Request& r) { r.prompt[0] = -1; }},
      {"maximum context length is 100 tokens, however you requested 110 tokens (100 in your "
       "prompt; 10",
       [](Request& r) { r.prompt.assign(100, 5); }},
      {"max_tokens: this model's maximum context length is 100 tokens, however you requested 101",
       [](Request& r) { r.params.max_tokens = 98; }},
      {"maximum context length", [](Request& r) { r.params.max_tokens = 4'000'000'000; }},
      {"maximum context length",
       [](Request& r) {
         r.prompt.assign(100, 5);
         r.params.max_tokens.reset();
       }},
      {"max_tokens: 0 is only of use", [](Request& r) { r.params.max_tokens = 0; }},
      {"temperature: nan", [](Request& r) { r.params.temperature = kNan; }},
      {"temperature: inf", [](Request& r) { r.params.temperature = kInf; }},
      {"temperature: -0.5", [](Request& r) { r.params.temperature = -0.5F; }},
      {"temperature: 2.5", [](Request& r) { r.params.temperature = 2.5F; }},
      {"top_p: 1.5", [](Request& r) { r.params.top_p = 1.5F; }},
      {"top_p: -0.1", [](Request& r) { r.params.top_p = -0.1F; }},
      {"top_p: nan", [](Request& r) { r.params.top_p = kNan; }},
      {"top_k: -2", [](Request& r) { r.params.top_k = -2; }},
      {"logprobs: 21", [](Request& r) { r.params.num_logprobs = 21; }},
      {"prompt_logprobs: -2", [](Request& r) { r.params.num_prompt_logprobs = -2; }},
      {"stop: 17 strings", [](Request& r) { r.params.stop.assign(17, "x"); }},
      {"stop[1]: must not be empty",
       [](Request& r) {
         r.params.stop = {"x", ""};
       }},
      {"stop[0]: 257 bytes", [](Request& r) { r.params.stop = {std::string(257, 'x')}; }},
      {"stop[0]: \"\\xff\" is not valid UTF-8", [](Request& r) { r.params.stop = {"\xff"}; }},
      {"stop_token_ids[0]: token id 99", [](Request& r) { r.params.stop_token_ids = {99}; }},
      {"stop_token_ids: 257", [](Request& r) { r.params.stop_token_ids.assign(257, 1); }},
      {"min_tokens: 11 is more than max_tokens, 10", [](Request& r) { r.params.min_tokens = 11; }},
      {"priority: 101 is not in [-100, 100]", [](Request& r) { r.params.priority = 101; }},
      {"priority: -101", [](Request& r) { r.params.priority = -101; }},
      {"min_p: 1.5", [](Request& r) { r.params.min_p = 1.5F; }},
      {"min_p: nan", [](Request& r) { r.params.min_p = kNan; }},
      {"typical_p: 0 ", [](Request& r) { r.params.typical_p = 0; }},
      {"typical_p: -1", [](Request& r) { r.params.typical_p = -1; }},
      {"repetition_penalty: 0 ", [](Request& r) { r.params.repetition_penalty = 0; }},
      {"repetition_penalty: 101", [](Request& r) { r.params.repetition_penalty = 101; }},
      {"presence_penalty: 2.5", [](Request& r) { r.params.presence_penalty = 2.5F; }},
      {"frequency_penalty: -2.5", [](Request& r) { r.params.frequency_penalty = -2.5F; }},
      {"logit_bias: 101",
       [](Request& r) {
         r.params.logit_bias = {{1, 101}};
       }},
      {"logit_bias[1]: token id 64",
       [](Request& r) {
         r.params.logit_bias = {{1, 1}, {64, 1}};
       }},
      {"logit_bias: token id 5 comes twice",
       [](Request& r) {
         r.params.logit_bias = {{5, 1}, {4, 1}, {5, 2}};
       }},
      {"logit_bias: 1025 entries", [](Request& r) { r.params.logit_bias.resize(1025); }},
      {"allowed_token_ids[0]: token id 64", [](Request& r) { r.params.allowed_token_ids = {64}; }},
      {"allowed_token_ids: 16385", [](Request& r) { r.params.allowed_token_ids.assign(16385, 1); }},
      {"bad_words[1]: \"\" of 0 bytes",
       [](Request& r) {
         r.params.bad_words = {"a", ""};
       }},
      {"bad_words[0]: ", [](Request& r) { r.params.bad_words = {"\xff"}; }},
      {"bad_words: 129", [](Request& r) { r.params.bad_words.assign(129, "x"); }},
      {"bad_words: one of them has no tokens", [](Request& r) { r.bad_words = {{}}; }},
      {"bad_words[1]: token id 64",
       [](Request& r) {
         r.bad_words = {{1, 64}};
       }},
      {"tenant: 257", [](Request& r) { r.tenant.assign(257, 't'); }},
  };
  for (const Case& test : cases) {
    Request request = good_request();
    test.spoil(request);
    const auto result = check_request(request, *model, 0);
    REQUIRE_MESSAGE(!result.ok(), test.what);
    CHECK(result.status().code() == StatusCode::kInvalidArgument);
    CHECK_MESSAGE(result.status().message().find(test.what) != std::string::npos,
                  result.status().message());
  }
}

TEST_CASE("parameters come out in the form the rest works with") {
  const auto model = testing::make_fake_model("fake", 100);
  Request request = good_request();
  request.params.max_tokens.reset();
  request.params.top_k = -1;
  request.params.temperature = 1e-9F;
  auto params = check_request(request, *model, 0);
  REQUIRE(params.ok());
  CHECK_EQ(*params->max_tokens, 97);
  CHECK_EQ(params->top_k, 0);
  CHECK_EQ(params->temperature, 0);
  request.params.top_p = 0;
  request.params.temperature = 1;
  params = check_request(request, *model, 0);
  REQUIRE(params.ok());
  CHECK_EQ(params->temperature, 0);
  CHECK_EQ(params->top_p, 1);
  request.params.allowed_token_ids = {9, 3, 9, 4};
  params = check_request(request, *model, 0);
  REQUIRE(params.ok());
  CHECK(params->allowed_token_ids == std::vector<std::int32_t>{3, 4, 9});
}

TEST_CASE(
    "the whole context may be used, and the prompt alone may fill it when it is only scored") {
  const auto model = testing::make_fake_model("fake", 100);
  Request request = good_request();
  request.params.max_tokens = 97;
  CHECK(check_request(request, *model, 0).ok());
  request.prompt.assign(100, 5);
  request.params.max_tokens = 0;
  request.params.num_prompt_logprobs = 0;
  CHECK(check_request(request, *model, 0).ok());
}

TEST_CASE("what can never fit the KV is refused, and an open length takes what there is") {
  const auto model = testing::make_fake_model("fake", 100);
  Request request = good_request();
  request.params.max_tokens = 30;  // writes 3 + 29 positions
  CHECK(check_request(request, *model, 32).ok());
  const auto refused = check_request(request, *model, 31);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().message().find("KV cache holds 31") != std::string::npos);
  // What clients look for when a prompt must be cut.
  CHECK(refused.status().message().find("maximum context length") != std::string::npos);
  request.params.max_tokens.reset();
  CHECK_EQ(*check_request(request, *model, 32)->max_tokens, 30);
}

}  // namespace brigade::router
