// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "common/wire/client.h"
#include "common/wire/messages.h"
#include "common/wire/stage_link.h"

/// One message of each kind with no field at its default, and the same kinds empty.
namespace brigade::wire {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline Assign sample_assign() {
  return {
      .epoch = 7,
      .replica = 2,
      .model_name = "m",
      .model_path = "/models/m.gguf",
      .model_digest = "abc",
      .tp_rank = 1,
      .pp_stage = 1,
      .stages = {{.layers = {0, 13},
                  .tp_size = 1,
                  .endpoints = {{"ipc:///a", "tcp://h:1"}},
                  .host_ids = {"h0"},
                  .link_keys = {"key of h0"}},
                 {.layers = {13, 30},
                  .tp_size = 2,
                  .endpoints = {{}, {"tcp://h:2"}},
                  .host_ids = {"h1", ""},
                  .link_keys = {"", "key of h2"}}},
      .group_name = "brigade-7-1",
      .activations = ActivationMode::kFloat,
      .kv_type = KvType::kF32,
      .max_step_tokens = 300,
      .max_seqs = 9,
      .collective_timeout_ms = 1234,
      .sim = {
          .base_us = 1, .us_per_token = 2, .us_per_context_token = 3, .jitter = 0.5, .load_ms = 4}};
}

inline std::shared_ptr<const SamplingControls> sample_controls(std::int32_t n) {
  return std::make_shared<SamplingControls>(SamplingControls{.min_p = 0.25F,
                                                             .typical_p = 0.5F,
                                                             .repetition_penalty = 1.5F,
                                                             .presence_penalty = -0.5F,
                                                             .frequency_penalty = 0.75F,
                                                             .bias = {{n, 100}, {7, -2.5F}},
                                                             .allowed_tokens = {1, n + 1},
                                                             .bad_words = {{4}, {5, n}},
                                                             .prompt_tokens = {2, 9},
                                                             .output_tokens = {9, 9, n}});
}

inline StepCommand sample_command() {
  return {.epoch = 7,
          .step = 1ULL << 40,
          .lane = 1,
          .release = {3, 4},
          .admit = {{.seq = 1,
                     .seed = ~0ULL,
                     .temperature = 0.7F,
                     .top_p = 0.9F,
                     .top_k = 40,
                     .num_logprobs = 20,
                     .num_prompt_logprobs = 0,
                     .banned_until_position = 12,
                     .banned_tokens = {2, 0}},
                    {.seq = 2},
                    {.seq = 3, .controls = sample_controls(1)},
                    {.seq = 4, .controls = sample_controls(2)}},
          .seq = {0, 1, 2},
          .position = {17, 0, 5},
          .flags = {kTokenFromSample | kSampleToken, kScorePrompt, kSampleToken},
          .next_token = {-1, 44, -1},
          .cu_tokens = {0, 1, 4, 4},
          .tokens = {-1, 5, 6, 7},
          .cu_blocks = {0, 0, 2, 2},
          .blocks = {100, 200},
          .copy_from = {9},
          .copy_to = {100}};
}

inline StepResult sample_result() {
  return {.epoch = 7,
          .step = 9,
          .lane = 1,
          .plan_hash = 0xfeedULL << 40,
          .seq = {0, 1},
          .position = {17, 3},
          .token = {11, 12},
          .sampled = {kSampledEntry | kNothingAllowed, kPromptEntry},
          .logprob = {-0.25F, kNan},
          .cu_top = {0, 2, 2},
          .top_tokens = {11, 30},
          .top_logprobs = {-0.25F, -3.5F},
          .compute_us = 5,
          .wait_us = 6};
}

inline std::vector<FromWorker> from_worker_samples() {
  return {Hello{.protocol_version = 3,
                .build_id = "b",
                .schema_hash = "s",
                .name = "worker \xff",
                .incarnation = 4,
                .host_id = "h",
                .pid = 5,
                .device = "sim",
                .num_threads = 6,
                .memory_bytes = 1ULL << 50,
                .endpoints = {"ipc:///x", "", "tcp://127.0.0.1:1"},
                .link_key = "public"},
          LoadProgress{.epoch = 1, .fraction = 0.5F},
          Loaded{.epoch = 1, .max_kv_blocks = 2, .weight_bytes = 3},
          Ready{.epoch = 1},
          Failed{.epoch = 1, .status = {StatusCode::kDataLoss, "no\nfile"}},
          Heartbeat{.epoch = 1, .last_step = 2, .queued_steps = 3, .running = true},
          Goodbye{.reason = "bye"},
          sample_result(),
          StageTimes{.epoch = 1, .num_steps = 2, .compute_us = 3, .wait_us = 4, .link_us = 5}};
}

inline std::vector<ToWorker> to_worker_samples() {
  return {sample_assign(),
          Start{.epoch = 1, .num_kv_blocks = 2},
          Abort{.epoch = 1, .reason = "because"},
          Release{.reason = "drained"},
          HeartbeatAck{.epoch = 1, .interval_ms = 2500},
          sample_command()};
}

inline std::vector<StageLinkMessage> stage_link_samples() {
  return {ActivationHeader{.epoch = 1,
                           .step = 2,
                           .lane = 3,
                           .plan_hash = 4,
                           .from_stage = 5,
                           .from_rank = 6,
                           .num_rows = 7,
                           .hidden_size = 8,
                           .element = ElementType::kF16},
          SampledTokens{
              .epoch = 1, .step = 2, .lane = 3, .plan_hash = 4, .seq = {5, 6}, .token = {7, -1}}};
}

inline GenerationParams sample_params() {
  return {.temperature = 0.5F,
          .top_p = 0.25F,
          .top_k = 7,
          .seed = 0,
          .max_tokens = 0,
          .min_tokens = 3,
          .ignore_eos = true,
          .stop = {"\n\n", "END"},
          .stop_token_ids = {1, 2},
          .num_logprobs = 5,
          .num_prompt_logprobs = 0,
          .deadline_ms = 1000,
          .priority = -7,
          .min_p = 0.125F,
          .typical_p = 0.5F,
          .repetition_penalty = 1.25F,
          .presence_penalty = -1,
          .frequency_penalty = 2,
          .logit_bias = {{3, -100}, {4, 0.5F}},
          .allowed_token_ids = {3, 4},
          .bad_words = {"bad", "very bad"},
          .include_stop_str = true,
          .keep_special_tokens = true};
}

inline std::vector<ToRouter> to_router_samples() {
  return {Generate{.request = 1,
                   .model = "m",
                   .tenant = "t",
                   .prompt = TextPrompt{"hello", true},
                   .params = sample_params()},
          Generate{.request = 2,
                   .model = "m",
                   .tenant = "t",
                   .prompt = TokenPrompt{{1, 2, 3}},
                   .params = {}},
          Generate{.request = 3,
                   .model = "m",
                   .tenant = "",
                   .prompt = ChatPrompt{{{"system", "be kind"}, {"user", ""}}},
                   .params = {}},
          Cancel{.request = 1},
          ListModels{.request = 2},
          GetStatus{.request = 3},
          Drain{.request = 4, .replica = 5}};
}

inline std::vector<FromRouter> from_router_samples() {
  const std::vector<OutputToken> tokens = {
      {.token = 1, .logprob = -0.5F, .top = {{1, -0.5F}, {2, -1.5F}}},
      {.token = 2, .logprob = std::nullopt, .top = {}}};
  return {Accepted{.request = 1},
          Chunk{.request = 1,
                .text = "text",
                .tokens = tokens,
                .token_texts = {"a", "\xf0\x9f"},
                .prompt_tokens = tokens},
          Chunk{.request = 1, .text = "only text"},
          Finished{.request = 1,
                   .reason = FinishReason::kLength,
                   .stop_reason = "END",
                   .prompt_tokens = 1,
                   .completion_tokens = 2,
                   .cached_tokens = 3},
          Refused{.request = 1,
                  .status = {StatusCode::kResourceExhausted, "full"},
                  .retry_after_s = 4,
                  .reason = DropReason::kSaturated},
          Models{.request = 1, .models = {{"a", 100, 200}, {"b", 300, 400}}},
          StatusReply{.request = 1, .json = "{}"},
          Done{.request = 1},
          KeepAlive{}};
}

}  // namespace brigade::wire
