// SPDX-License-Identifier: Apache-2.0
#include "common/wire/controls_codec.h"
#include "common/wire/pack.h"

namespace brigade::wire {
namespace {

auto pack_body(Builder& b, const Hello& m) {
  const auto build_id = pack_text(b, m.build_id);
  const auto schema_hash = pack_text(b, m.schema_hash);
  const auto name = pack_text(b, m.name);
  const auto host_id = pack_text(b, m.host_id);
  const auto device = pack_text(b, m.device);
  const auto endpoints = pack_strings(b, m.endpoints);
  const auto link_key = pack_text(b, m.link_key);
  return fb::CreateHello(b, m.protocol_version, build_id, schema_hash, name, m.incarnation, host_id,
                         m.pid, device, m.num_threads, m.memory_bytes, endpoints, link_key);
}

auto pack_body(Builder& b, const LoadProgress& m) {
  return fb::CreateLoadProgress(b, m.epoch, m.fraction);
}

auto pack_body(Builder& b, const Loaded& m) {
  return fb::CreateLoaded(b, m.epoch, m.max_kv_blocks, m.weight_bytes);
}

auto pack_body(Builder& b, const Ready& m) {
  return fb::CreateReady(b, m.epoch);
}

auto pack_body(Builder& b, const Failed& m) {
  const auto error = pack_error(b, m.status);
  return fb::CreateFailed(b, m.epoch, error);
}

auto pack_body(Builder& b, const Heartbeat& m) {
  return fb::CreateHeartbeat(b, m.epoch, m.last_step, m.queued_steps, m.running);
}

auto pack_body(Builder& b, const Goodbye& m) {
  return fb::CreateGoodbye(b, pack_text(b, m.reason));
}

auto pack_body(Builder& b, const StepResult& m) {
  const auto seq = pack_vector(b, m.seq);
  const auto position = pack_vector(b, m.position);
  const auto token = pack_vector(b, m.token);
  const auto sampled = pack_vector(b, m.sampled);
  const auto logprob = pack_vector(b, m.logprob);
  const auto cu_top = pack_vector(b, m.cu_top);
  const auto top_tokens = pack_vector(b, m.top_tokens);
  const auto top_logprobs = pack_vector(b, m.top_logprobs);
  return fb::CreateStepResult(b, m.epoch, m.step, m.lane, m.plan_hash, seq, position, token,
                              sampled, logprob, cu_top, top_tokens, top_logprobs, m.compute_us,
                              m.wait_us);
}

auto pack_body(Builder& b, const StageTimes& m) {
  return fb::CreateStageTimes(b, m.epoch, m.num_steps, m.compute_us, m.wait_us, m.link_us);
}

Offset<fb::Stages> pack_stages(Builder& b, const std::vector<StageInfo>& stages) {
  std::vector<std::int64_t> begins, ends;
  std::vector<std::uint32_t> tp_sizes, cu_ranks = {0}, cu_endpoints = {0};
  std::vector<std::string> host_ids, endpoints, link_keys;
  for (const StageInfo& stage : stages) {
    INVARIANT_EQ(stage.endpoints.size(), stage.host_ids.size());
    INVARIANT_EQ(stage.link_keys.size(), stage.host_ids.size());
    begins.push_back(stage.layers.begin);
    ends.push_back(stage.layers.end);
    tp_sizes.push_back(stage.tp_size);
    host_ids.insert(host_ids.end(), stage.host_ids.begin(), stage.host_ids.end());
    link_keys.insert(link_keys.end(), stage.link_keys.begin(), stage.link_keys.end());
    cu_ranks.push_back(static_cast<std::uint32_t>(host_ids.size()));
    for (const auto& of_rank : stage.endpoints) {
      endpoints.insert(endpoints.end(), of_rank.begin(), of_rank.end());
      cu_endpoints.push_back(static_cast<std::uint32_t>(endpoints.size()));
    }
  }
  const auto begins_offset = pack_vector(b, begins);
  const auto ends_offset = pack_vector(b, ends);
  const auto tp_offset = pack_vector(b, tp_sizes);
  const auto ranks_offset = pack_vector(b, cu_ranks);
  const auto hosts_offset = pack_strings(b, host_ids);
  const auto cu_offset = pack_vector(b, cu_endpoints);
  const auto endpoints_offset = pack_strings(b, endpoints);
  const auto keys_offset = pack_strings(b, link_keys);
  return fb::CreateStages(b, begins_offset, ends_offset, tp_offset, ranks_offset, hosts_offset,
                          cu_offset, endpoints_offset, keys_offset);
}

auto pack_body(Builder& b, const Assign& m) {
  const auto model_name = pack_text(b, m.model_name);
  const auto model_path = pack_text(b, m.model_path);
  const auto model_digest = pack_text(b, m.model_digest);
  const auto stages = pack_stages(b, m.stages);
  const auto group_name = pack_text(b, m.group_name);
  const auto sim = fb::CreateSimCost(b, m.sim.base_us, m.sim.us_per_token,
                                     m.sim.us_per_context_token, m.sim.jitter, m.sim.load_ms);
  return fb::CreateAssign(b, m.epoch, m.replica, model_name, model_path, model_digest, m.tp_rank,
                          m.pp_stage, stages, group_name, static_cast<std::uint8_t>(m.activations),
                          static_cast<std::uint8_t>(m.kv_type), m.max_step_tokens, m.max_seqs,
                          m.collective_timeout_ms, sim);
}

auto pack_body(Builder& b, const Start& m) {
  return fb::CreateStart(b, m.epoch, m.num_kv_blocks);
}

auto pack_body(Builder& b, const Abort& m) {
  return fb::CreateAbort(b, m.epoch, pack_text(b, m.reason));
}

auto pack_body(Builder& b, const Release& m) {
  return fb::CreateRelease(b, pack_text(b, m.reason));
}

auto pack_body(Builder& b, const HeartbeatAck& m) {
  return fb::CreateHeartbeatAck(b, m.epoch, m.interval_ms);
}

/// The values of one member of all admitted sequences.
template <typename T>
auto pack_column(Builder& b, const std::vector<SequenceAdmit>& admit, T SequenceAdmit::*member) {
  T* values = nullptr;
  const auto offset = b.CreateUninitializedVector(admit.size(), &values);
  for (std::size_t i = 0; i < admit.size(); ++i) {
    flatbuffers::WriteScalar(values + i, admit[i].*member);
  }
  return Offset<flatbuffers::Vector<T>>(offset);
}

Offset<fb::Admit> pack_admit(Builder& b, const std::vector<SequenceAdmit>& admit) {
  if (admit.empty()) return 0;
  std::vector<std::uint32_t> cu_banned = {0};
  std::vector<std::int32_t> banned;
  for (const SequenceAdmit& one : admit) {
    banned.insert(banned.end(), one.banned_tokens.begin(), one.banned_tokens.end());
    cu_banned.push_back(static_cast<std::uint32_t>(banned.size()));
  }
  const auto controls = pack_controls(b, admit);
  const auto seq = pack_column(b, admit, &SequenceAdmit::seq);
  const auto seed = pack_column(b, admit, &SequenceAdmit::seed);
  const auto temperature = pack_column(b, admit, &SequenceAdmit::temperature);
  const auto top_p = pack_column(b, admit, &SequenceAdmit::top_p);
  const auto top_k = pack_column(b, admit, &SequenceAdmit::top_k);
  const auto num_logprobs = pack_column(b, admit, &SequenceAdmit::num_logprobs);
  const auto num_prompt_logprobs = pack_column(b, admit, &SequenceAdmit::num_prompt_logprobs);
  const auto banned_until = pack_column(b, admit, &SequenceAdmit::banned_until_position);
  const auto cu_offset = pack_vector(b, cu_banned);
  const auto banned_offset = pack_vector(b, banned);
  return fb::CreateAdmit(b, seq, seed, temperature, top_p, top_k, num_logprobs, num_prompt_logprobs,
                         banned_until, cu_offset, banned_offset, controls);
}

auto pack_body(Builder& b, const StepCommand& m) {
  const auto release = pack_vector(b, m.release);
  const auto admit = pack_admit(b, m.admit);
  const auto seq = pack_vector(b, m.seq);
  const auto position = pack_vector(b, m.position);
  const auto flags = pack_vector(b, m.flags);
  const auto next_token = pack_vector(b, m.next_token);
  const auto cu_tokens = pack_vector(b, m.cu_tokens);
  const auto tokens = pack_vector(b, m.tokens);
  const auto cu_blocks = pack_vector(b, m.cu_blocks);
  const auto blocks = pack_vector(b, m.blocks);
  const auto copy_from = pack_vector(b, m.copy_from);
  const auto copy_to = pack_vector(b, m.copy_to);
  return fb::CreateStepCommand(b, m.epoch, m.step, m.lane, release, admit, seq, position, flags,
                               next_token, cu_tokens, tokens, cu_blocks, blocks, copy_from,
                               copy_to);
}

auto pack_body(Builder& b, const ActivationHeader& m) {
  return fb::CreateActivations(b, m.epoch, m.step, m.lane, m.plan_hash, m.from_stage, m.from_rank,
                               m.num_rows, m.hidden_size, static_cast<std::uint8_t>(m.element));
}

auto pack_body(Builder& b, const SampledTokens& m) {
  const auto seq = pack_vector(b, m.seq);
  const auto token = pack_vector(b, m.token);
  return fb::CreateSampledTokens(b, m.epoch, m.step, m.lane, m.plan_hash, seq, token);
}

/// Builds the root with its union. Alternatives of the variant are in the union's order, which
/// starts at 1 (0 is NONE).
template <typename Body, typename Create, typename Message>
void pack_root(Builder& b, const Message& message, Create create) {
  const auto body = std::visit([&b](const auto& m) { return pack_body(b, m).Union(); }, message);
  b.Finish(create(b, static_cast<Body>(message.index() + 1), body));
}

}  // namespace

void pack(Builder& b, const FromWorker& message) {
  static_assert(std::variant_size_v<FromWorker> ==
                static_cast<std::size_t>(fb::FromWorkerBody::MAX));
  pack_root<fb::FromWorkerBody>(b, message, fb::CreateFromWorker);
}

void pack(Builder& b, const ToWorker& message) {
  static_assert(std::variant_size_v<ToWorker> == static_cast<std::size_t>(fb::ToWorkerBody::MAX));
  pack_root<fb::ToWorkerBody>(b, message, fb::CreateToWorker);
}

void pack(Builder& b, const StageLinkMessage& message) {
  static_assert(std::variant_size_v<StageLinkMessage> ==
                static_cast<std::size_t>(fb::StageLinkBody::MAX));
  pack_root<fb::StageLinkBody>(b, message, fb::CreateStageLink);
}

}  // namespace brigade::wire
