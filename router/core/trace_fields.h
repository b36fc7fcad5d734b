// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>
#include <variant>

#include "router/core/router.h"
#include "router/core/types.h"

/// The fields of everything that a decision trace holds, named once for writing and for reading:
/// `visit_fields(visit, value)` calls visit("name", value.name, ...) with all of them. Each list
/// binds its struct whole, so that a field added there does not compile until it is traced too.
namespace brigade::router {

template <typename T, typename Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

void visit_fields(auto&& visit, Is<Range> auto& value) {
  auto& [begin, end] = value;
  visit("begin", begin, "end", end);
}

void visit_fields(auto&& visit, Is<wire::SimCost> auto& value) {
  auto& [base_us, us_per_token, us_per_context_token, jitter, load_ms] = value;
  visit("base_us", base_us, "us_per_token", us_per_token, "us_per_context_token",
        us_per_context_token, "jitter", jitter, "load_ms", load_ms);
}

void visit_fields(auto&& visit, Is<RouterConfig> auto& value) {
  auto& [tp_size, pp_size, max_replicas, activations, kv_type, max_kv_blocks, step_tokens, max_seqs,
         prefix_cache, bucket_edges, queue_ageing, max_queued_requests, max_queued_tokens,
         max_queued_requests_per_tenant, max_queued_tokens_per_tenant, max_queue_delay,
         overload_calm, tenant_weights, default_deadline, heartbeat_timeout, load_timeout,
         step_timeout, collective_timeout_ms, max_fail_overs, sim, schema_hash, seed] = value;
  visit("tp_size", tp_size, "pp_size", pp_size, "max_replicas", max_replicas);
  visit("activations", activations, "kv_type", kv_type, "max_kv_blocks", max_kv_blocks);
  visit("step_tokens", step_tokens, "max_seqs", max_seqs, "prefix_cache", prefix_cache);
  visit("bucket_edges", bucket_edges, "queue_ageing", queue_ageing);
  visit("max_queued_requests", max_queued_requests, "max_queued_tokens", max_queued_tokens);
  visit("max_queued_requests_per_tenant", max_queued_requests_per_tenant);
  visit("max_queued_tokens_per_tenant", max_queued_tokens_per_tenant);
  visit("max_queue_delay", max_queue_delay, "overload_calm", overload_calm);
  visit("tenant_weights", tenant_weights);
  visit("default_deadline", default_deadline, "heartbeat_timeout", heartbeat_timeout);
  visit("load_timeout", load_timeout, "step_timeout", step_timeout);
  visit("collective_timeout_ms", collective_timeout_ms, "max_fail_overs", max_fail_overs);
  visit("sim", sim, "schema_hash", schema_hash, "seed", seed);
}

// ---- events ----

void visit_fields(auto&& visit, Is<wire::TokenBias> auto& value) {
  auto& [token, bias] = value;
  visit("token", token, "bias", bias);
}

void visit_fields(auto&& visit, Is<wire::GenerationParams> auto& value) {
  auto& [temperature, top_p, top_k, seed, max_tokens, min_tokens, ignore_eos, stop, stop_token_ids,
         num_logprobs, num_prompt_logprobs, deadline_ms, priority, min_p, typical_p,
         repetition_penalty, presence_penalty, frequency_penalty, logit_bias, allowed_token_ids,
         bad_words, include_stop_str, keep_special_tokens] = value;
  visit("temperature", temperature, "top_p", top_p, "top_k", top_k, "seed", seed);
  visit("max_tokens", max_tokens, "min_tokens", min_tokens, "ignore_eos", ignore_eos);
  visit("stop", stop, "stop_token_ids", stop_token_ids, "num_logprobs", num_logprobs);
  visit("num_prompt_logprobs", num_prompt_logprobs, "deadline_ms", deadline_ms);
  visit("priority", priority, "min_p", min_p, "typical_p", typical_p);
  visit("repetition_penalty", repetition_penalty, "presence_penalty", presence_penalty);
  visit("frequency_penalty", frequency_penalty, "logit_bias", logit_bias);
  visit("allowed_token_ids", allowed_token_ids, "bad_words", bad_words);
  visit("include_stop_str", include_stop_str, "keep_special_tokens", keep_special_tokens);
}

void visit_fields(auto&& visit, Is<Request> auto& value) {
  auto& [id, tenant, model, prompt, group, params, bad_words] = value;
  visit("id", id, "tenant", tenant, "model", model, "prompt", prompt, "group", group);
  visit("params", params, "bad_words", bad_words);
}

void visit_fields(auto&& visit, Is<wire::Hello> auto& value) {
  auto& [protocol_version, build_id, schema_hash, name, incarnation, host_id, pid, device,
         num_threads, memory_bytes, endpoints, link_key] = value;
  visit("protocol_version", protocol_version, "build_id", build_id, "schema_hash", schema_hash);
  visit("name", name, "incarnation", incarnation, "host_id", host_id, "pid", pid);
  visit("device", device, "num_threads", num_threads, "memory_bytes", memory_bytes);
  visit("endpoints", endpoints, "link_key", link_key);
}

void visit_fields(auto&& visit, Is<wire::LoadProgress> auto& value) {
  auto& [epoch, fraction] = value;
  visit("epoch", epoch, "fraction", fraction);
}

void visit_fields(auto&& visit, Is<wire::Loaded> auto& value) {
  auto& [epoch, max_kv_blocks, weight_bytes] = value;
  visit("epoch", epoch, "max_kv_blocks", max_kv_blocks, "weight_bytes", weight_bytes);
}

void visit_fields(auto&& visit, Is<wire::Ready> auto& value) {
  auto& [epoch] = value;
  visit("epoch", epoch);
}

void visit_fields(auto&& visit, Is<wire::Failed> auto& value) {
  auto& [epoch, status] = value;
  visit("epoch", epoch, "status", status);
}

void visit_fields(auto&& visit, Is<wire::Heartbeat> auto& value) {
  auto& [epoch, last_step, queued_steps, running] = value;
  visit("epoch", epoch, "last_step", last_step, "queued_steps", queued_steps, "running", running);
}

void visit_fields(auto&& visit, Is<wire::Goodbye> auto& value) {
  auto& [reason] = value;
  visit("reason", reason);
}

void visit_fields(auto&& visit, Is<wire::StepResult> auto& value) {
  auto& [epoch, step, lane, plan_hash, seq, position, token, sampled, logprob, cu_top, top_tokens,
         top_logprobs, compute_us, wait_us] = value;
  visit("epoch", epoch, "step", step, "lane", lane, "plan_hash", plan_hash, "seq", seq);
  visit("position", position, "token", token, "sampled", sampled, "logprob", logprob);
  visit("cu_top", cu_top, "top_tokens", top_tokens, "top_logprobs", top_logprobs);
  visit("compute_us", compute_us, "wait_us", wait_us);
}

void visit_fields(auto&& visit, Is<wire::StageTimes> auto& value) {
  auto& [epoch, num_steps, compute_us, wait_us, link_us] = value;
  visit("epoch", epoch, "num_steps", num_steps, "compute_us", compute_us, "wait_us", wait_us,
        "link_us", link_us);
}

/// [FromWorker::index()]
inline constexpr std::array<std::string_view, std::variant_size_v<wire::FromWorker>>
    kFromWorkerNames = {"Hello",     "LoadProgress", "Loaded",     "Ready",     "Failed",
                        "Heartbeat", "Goodbye",      "StepResult", "StageTimes"};

// ---- actions ----

void visit_fields(auto&& visit, Is<wire::StageInfo> auto& value) {
  auto& [layers, tp_size, endpoints, host_ids, link_keys] = value;
  visit("layers", layers, "tp_size", tp_size, "endpoints", endpoints, "host_ids", host_ids);
  visit("link_keys", link_keys);
}

void visit_fields(auto&& visit, Is<wire::Assign> auto& value) {
  auto& [epoch, replica, model_name, model_path, model_digest, tp_rank, pp_stage, stages,
         group_name, activations, kv_type, max_step_tokens, max_seqs, collective_timeout_ms, sim] =
      value;
  visit("epoch", epoch, "replica", replica, "model_name", model_name, "model_path", model_path);
  visit("model_digest", model_digest, "tp_rank", tp_rank, "pp_stage", pp_stage, "stages", stages);
  visit("group_name", group_name, "activations", activations, "kv_type", kv_type);
  visit("max_step_tokens", max_step_tokens, "max_seqs", max_seqs);
  visit("collective_timeout_ms", collective_timeout_ms, "sim", sim);
}

void visit_fields(auto&& visit, Is<wire::Start> auto& value) {
  auto& [epoch, num_kv_blocks] = value;
  visit("epoch", epoch, "num_kv_blocks", num_kv_blocks);
}

void visit_fields(auto&& visit, Is<wire::Abort> auto& value) {
  auto& [epoch, reason] = value;
  visit("epoch", epoch, "reason", reason);
}

void visit_fields(auto&& visit, Is<wire::Release> auto& value) {
  auto& [reason] = value;
  visit("reason", reason);
}

void visit_fields(auto&& visit, Is<wire::HeartbeatAck> auto& value) {
  auto& [epoch, interval_ms] = value;
  visit("epoch", epoch, "interval_ms", interval_ms);
}

void visit_fields(auto&& visit, Is<wire::SamplingControls> auto& value) {
  auto& [min_p, typical_p, repetition_penalty, presence_penalty, frequency_penalty, bias,
         allowed_tokens, bad_words, prompt_tokens, output_tokens] = value;
  visit("min_p", min_p, "typical_p", typical_p, "repetition_penalty", repetition_penalty);
  visit("presence_penalty", presence_penalty, "frequency_penalty", frequency_penalty);
  visit("bias", bias, "allowed_tokens", allowed_tokens, "bad_words", bad_words);
  visit("prompt_tokens", prompt_tokens, "output_tokens", output_tokens);
}

void visit_fields(auto&& visit, Is<wire::SequenceAdmit> auto& value) {
  auto& [seq, seed, temperature, top_p, top_k, num_logprobs, num_prompt_logprobs,
         banned_until_position, banned_tokens, controls] = value;
  visit("seq", seq, "seed", seed, "temperature", temperature, "top_p", top_p, "top_k", top_k);
  visit("num_logprobs", num_logprobs, "num_prompt_logprobs", num_prompt_logprobs);
  visit("banned_until_position", banned_until_position, "banned_tokens", banned_tokens);
  visit("controls", controls);
}

void visit_fields(auto&& visit, Is<wire::StepCommand> auto& value) {
  auto& [epoch, step, lane, release, admit, seq, position, flags, next_token, cu_tokens, tokens,
         cu_blocks, blocks, copy_from, copy_to] = value;
  visit("epoch", epoch, "step", step, "lane", lane, "release", release, "admit", admit);
  visit("seq", seq, "position", position, "flags", flags, "next_token", next_token);
  visit("cu_tokens", cu_tokens, "tokens", tokens, "cu_blocks", cu_blocks, "blocks", blocks);
  visit("copy_from", copy_from, "copy_to", copy_to);
}

/// [ToWorker::index()]
inline constexpr std::array<std::string_view, std::variant_size_v<wire::ToWorker>> kToWorkerNames =
    {"Assign", "Start", "Abort", "Release", "HeartbeatAck", "StepCommand"};

void visit_fields(auto&& visit, Is<wire::TokenLogprob> auto& value) {
  auto& [token, logprob] = value;
  visit("token", token, "logprob", logprob);
}

void visit_fields(auto&& visit, Is<wire::OutputToken> auto& value) {
  auto& [token, logprob, top] = value;
  visit("token", token, "logprob", logprob, "top", top);
}

void visit_fields(auto&& visit, Is<Usage> auto& value) {
  auto& [prompt_tokens, completion_tokens, cached_tokens] = value;
  visit("prompt_tokens", prompt_tokens, "completion_tokens", completion_tokens, "cached_tokens",
        cached_tokens);
}

void visit_fields(auto&& visit, Is<Output> auto& value) {
  auto& [request, text, tokens, token_texts, prompt_tokens, finish, stop_reason, status, usage,
         retry_after_s, drop_reason] = value;
  visit("request", request, "text", text, "tokens", tokens, "token_texts", token_texts);
  visit("prompt_tokens", prompt_tokens, "finish", finish, "stop_reason", stop_reason);
  visit("status", status, "usage", usage, "retry_after_s", retry_after_s, "drop_reason",
        drop_reason);
}

}  // namespace brigade::router
