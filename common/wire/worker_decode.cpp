// SPDX-License-Identifier: Apache-2.0
#include "common/wire/codec.h"
#include "common/wire/controls_codec.h"
#include "common/wire/fields.h"

namespace brigade::wire {
namespace {

Hello unpack(const fb::Hello& m, Fields& f) {
  return {.protocol_version = m.protocol_version(),
          .build_id = f.text(m.build_id()),
          .schema_hash = f.text(m.schema_hash()),
          .name = f.text(m.name()),
          .incarnation = m.incarnation(),
          .host_id = f.text(m.host_id()),
          .pid = m.pid(),
          .device = f.text(m.device()),
          .num_threads = m.num_threads(),
          .memory_bytes = m.memory_bytes(),
          .endpoints = f.strings(m.endpoints(), "endpoints"),
          .link_key = f.text(m.link_key())};
}

LoadProgress unpack(const fb::LoadProgress& m, Fields& f) {
  return {.epoch = m.epoch(), .fraction = f.in_range(m.fraction(), 0.0F, 1.0F, "fraction")};
}

Loaded unpack(const fb::Loaded& m, Fields&) {
  return {.epoch = m.epoch(), .max_kv_blocks = m.max_kv_blocks(), .weight_bytes = m.weight_bytes()};
}

Ready unpack(const fb::Ready& m, Fields&) {
  return {.epoch = m.epoch()};
}

Failed unpack(const fb::Failed& m, Fields& f) {
  return {.epoch = m.epoch(), .status = f.error(m.error(), "error")};
}

Heartbeat unpack(const fb::Heartbeat& m, Fields&) {
  return {.epoch = m.epoch(),
          .last_step = m.last_step(),
          .queued_steps = m.queued_steps(),
          .running = m.running()};
}

Goodbye unpack(const fb::Goodbye& m, Fields& f) {
  return {.reason = f.text(m.reason())};
}

StepResult unpack(const fb::StepResult& m, Fields& f) {
  StepResult r = {.epoch = m.epoch(),
                  .step = m.step(),
                  .lane = m.lane(),
                  .plan_hash = m.plan_hash(),
                  .seq = f.vector(m.seq()),
                  .position = f.vector(m.position()),
                  .token = f.vector(m.token()),
                  .sampled = f.vector(m.sampled()),
                  .logprob = f.vector(m.logprob()),
                  .cu_top = f.vector(m.cu_top()),
                  .top_tokens = f.vector(m.top_tokens()),
                  .top_logprobs = f.vector(m.top_logprobs()),
                  .compute_us = m.compute_us(),
                  .wait_us = m.wait_us()};
  const std::size_t n = r.seq.size();
  f.length(r.position.size(), n, "position");
  f.length(r.token.size(), n, "token");
  f.length(r.sampled.size(), n, "sampled");
  f.length(r.logprob.size(), n, "logprob");
  f.intervals(r.cu_top, n, r.top_tokens.size(), "cu_top");
  f.length(r.top_logprobs.size(), r.top_tokens.size(), "top_logprobs");
  for (const std::uint8_t kind : r.sampled) {
    const bool known = kind <= kSampledEntry || kind == (kSampledEntry | kNothingAllowed) ||
                       (kind & ~kSampledEntry) == kLogitsNotFinite;
    if (!known) f.fault("sampled", str_cat("is ", +kind, ", no kind of entry"));
  }
  for (const float p : r.top_logprobs) {
    if (std::isnan(p)) f.fault("top_logprobs", "has a NaN");
  }
  return r;
}

StageTimes unpack(const fb::StageTimes& m, Fields&) {
  return {.epoch = m.epoch(),
          .num_steps = m.num_steps(),
          .compute_us = m.compute_us(),
          .wait_us = m.wait_us(),
          .link_us = m.link_us()};
}

std::vector<StageInfo> unpack_stages(const fb::Stages* m, Fields& f) {
  if (m == nullptr) return {};
  const auto begins = f.vector(m->layers_begin());
  const auto ends = f.vector(m->layers_end());
  const auto tp_sizes = f.vector(m->tp_size());
  const auto cu_ranks = f.vector(m->cu_ranks());
  const auto host_ids = f.strings(m->host_ids(), "stages.host_ids");
  const auto cu_endpoints = f.vector(m->cu_endpoints());
  const auto endpoints = f.strings(m->endpoints(), "stages.endpoints");
  const auto link_keys = f.strings(m->link_keys(), "stages.link_keys");
  const std::size_t n = begins.size();
  f.length(ends.size(), n, "stages.layers_end");
  f.length(tp_sizes.size(), n, "stages.tp_size");
  f.intervals(cu_ranks, n, host_ids.size(), "stages.cu_ranks");
  f.intervals(cu_endpoints, host_ids.size(), endpoints.size(), "stages.cu_endpoints");
  f.length(link_keys.size(), host_ids.size(), "stages.link_keys");
  if (!f.ok()) return {};
  std::vector<StageInfo> stages(n);
  for (std::size_t s = 0; s < n; ++s) {
    if (begins[s] < 0 || ends[s] < begins[s]) f.fault("stages.layers", "is not an interval");
    stages[s].layers = {begins[s], ends[s]};
    stages[s].tp_size = tp_sizes[s];
    f.length(cu_ranks[s + 1] - cu_ranks[s], tp_sizes[s], "stages.host_ids of a stage");
    for (std::uint32_t r = cu_ranks[s]; r < cu_ranks[s + 1]; ++r) {
      stages[s].host_ids.push_back(host_ids[r]);
      stages[s].link_keys.push_back(link_keys[r]);
      stages[s].endpoints.emplace_back(endpoints.begin() + cu_endpoints[r],
                                       endpoints.begin() + cu_endpoints[r + 1]);
    }
  }
  return stages;
}

SimCost unpack_sim(const fb::SimCost* m, Fields& f) {
  if (m == nullptr) return {};
  return {.base_us = f.finite(m->base_us(), "sim.base_us"),
          .us_per_token = f.finite(m->us_per_token(), "sim.us_per_token"),
          .us_per_context_token = f.finite(m->us_per_context_token(), "sim.us_per_context_token"),
          .jitter = f.finite(m->jitter(), "sim.jitter"),
          .load_ms = f.finite(m->load_ms(), "sim.load_ms")};
}

Assign unpack(const fb::Assign& m, Fields& f) {
  Assign a = {.epoch = m.epoch(),
              .replica = m.replica(),
              .model_name = f.text(m.model_name()),
              .model_path = f.text(m.model_path()),
              .model_digest = f.text(m.model_digest()),
              .tp_rank = m.tp_rank(),
              .pp_stage = m.pp_stage(),
              .stages = unpack_stages(m.stages(), f),
              .group_name = f.text(m.group_name()),
              .activations = f.enumerator(m.activations(), ActivationMode::kFloat, "activations"),
              .kv_type = f.enumerator(m.kv_type(), KvType::kF32, "kv_type"),
              .max_step_tokens = m.max_step_tokens(),
              .max_seqs = m.max_seqs(),
              .collective_timeout_ms = m.collective_timeout_ms(),
              .sim = unpack_sim(m.sim(), f)};
  if (a.pp_stage >= a.stages.size()) {
    f.fault("pp_stage", str_cat("is ", a.pp_stage, " of ", a.stages.size(), " stages"));
  } else if (a.tp_rank >= a.stages[a.pp_stage].tp_size) {
    f.fault("tp_rank", str_cat("is ", a.tp_rank, " of ", a.stages[a.pp_stage].tp_size, " ranks"));
  }
  return a;
}

Start unpack(const fb::Start& m, Fields&) {
  return {.epoch = m.epoch(), .num_kv_blocks = m.num_kv_blocks()};
}

Abort unpack(const fb::Abort& m, Fields& f) {
  return {.epoch = m.epoch(), .reason = f.text(m.reason())};
}

Release unpack(const fb::Release& m, Fields& f) {
  return {.reason = f.text(m.reason())};
}

HeartbeatAck unpack(const fb::HeartbeatAck& m, Fields&) {
  return {.epoch = m.epoch(), .interval_ms = m.interval_ms()};
}

std::vector<SequenceAdmit> unpack_admit(const fb::Admit* m, Fields& f) {
  if (m == nullptr) return {};
  const auto seq = f.vector(m->seq());
  const auto seed = f.vector(m->seed());
  const auto temperature = f.vector(m->temperature());
  const auto top_p = f.vector(m->top_p());
  const auto top_k = f.vector(m->top_k());
  const auto num_logprobs = f.vector(m->num_logprobs());
  const auto num_prompt_logprobs = f.vector(m->num_prompt_logprobs());
  const auto banned_until = f.vector(m->banned_until_position());
  const auto cu_banned = f.vector(m->cu_banned());
  const auto banned = f.vector(m->banned_tokens());
  const std::size_t n = seq.size();
  f.length(seed.size(), n, "admit.seed");
  f.length(temperature.size(), n, "admit.temperature");
  f.length(top_p.size(), n, "admit.top_p");
  f.length(top_k.size(), n, "admit.top_k");
  f.length(num_logprobs.size(), n, "admit.num_logprobs");
  f.length(num_prompt_logprobs.size(), n, "admit.num_prompt_logprobs");
  f.length(banned_until.size(), n, "admit.banned_until_position");
  f.intervals(cu_banned, n, banned.size(), "admit.cu_banned");
  if (!f.ok()) return {};
  std::vector<SequenceAdmit> admit(n);
  for (std::size_t i = 0; i < n; ++i) {
    f.finite(temperature[i], "admit.temperature");
    f.finite(top_p[i], "admit.top_p");
    admit[i] = {.seq = seq[i],
                .seed = seed[i],
                .temperature = temperature[i],
                .top_p = top_p[i],
                .top_k = top_k[i],
                .num_logprobs = f.in_range(num_logprobs[i], -1, 20, "admit.num_logprobs"),
                .num_prompt_logprobs =
                    f.in_range(num_prompt_logprobs[i], -1, 20, "admit.num_prompt_logprobs"),
                .banned_until_position = banned_until[i],
                .banned_tokens = {banned.begin() + cu_banned[i], banned.begin() + cu_banned[i + 1]},
                .controls = nullptr};
  }
  unpack_controls(m->controls(), admit, f);
  return admit;
}

StepCommand unpack(const fb::StepCommand& m, Fields& f) {
  StepCommand c = {.epoch = m.epoch(),
                   .step = m.step(),
                   .lane = m.lane(),
                   .release = f.vector(m.release()),
                   .admit = unpack_admit(m.admit(), f),
                   .seq = f.vector(m.seq()),
                   .position = f.vector(m.position()),
                   .flags = f.vector(m.flags()),
                   .next_token = f.vector(m.next_token()),
                   .cu_tokens = f.vector(m.cu_tokens()),
                   .tokens = f.vector(m.tokens()),
                   .cu_blocks = f.vector(m.cu_blocks()),
                   .blocks = f.vector(m.blocks()),
                   .copy_from = f.vector(m.copy_from()),
                   .copy_to = f.vector(m.copy_to())};
  const std::size_t n = c.seq.size();
  f.length(c.position.size(), n, "position");
  f.length(c.flags.size(), n, "flags");
  f.length(c.next_token.size(), n, "next_token");
  f.intervals(c.cu_tokens, n, c.tokens.size(), "cu_tokens");
  f.intervals(c.cu_blocks, n, c.blocks.size(), "cu_blocks");
  f.length(c.copy_to.size(), c.copy_from.size(), "copy_to");
  constexpr std::uint8_t kAllFlags = kTokenFromSample | kSampleToken | kScorePrompt;
  for (const std::uint8_t flags : c.flags)
    f.in_range<std::uint8_t>(flags, 0, kAllFlags, "flags");
  return c;
}

ActivationHeader unpack(const fb::Activations& m, Fields& f) {
  ActivationHeader h = {
      .epoch = m.epoch(),
      .step = m.step(),
      .lane = m.lane(),
      .plan_hash = m.plan_hash(),
      .from_stage = m.from_stage(),
      .from_rank = m.from_rank(),
      .num_rows = f.in_range(m.num_rows(), 0U, kMaxStageRows, "num_rows"),
      .hidden_size = f.in_range(m.hidden_size(), 1U, kMaxHiddenSize, "hidden_size"),
      .element = f.enumerator(m.element(), ElementType::kF16, "element")};
  // No overflow: 2^20 * 2^20 * 4 fits 64 bits.
  if (f.ok() && h.payload_bytes() > kMaxPayloadBytes) f.fault("num_rows", "asks for over 1 GiB");
  return h;
}

SampledTokens unpack(const fb::SampledTokens& m, Fields& f) {
  SampledTokens s = {.epoch = m.epoch(),
                     .step = m.step(),
                     .lane = m.lane(),
                     .plan_hash = m.plan_hash(),
                     .seq = f.vector(m.seq()),
                     .token = f.vector(m.token())};
  f.length(s.token.size(), s.seq.size(), "token");
  return s;
}

/// The body of type `Body` as a message. The verifier has seen that the union's value is there when
/// its type is known.
template <typename Message, typename Body>
Result<Message> take(const Body* body, std::string_view name, std::size_t bytes,
                     std::size_t max_bytes) {
  if (body == nullptr) return data_loss(str_cat(name, " has no body"));
  if (bytes > max_bytes) {
    return data_loss(str_cat(name, " of ", bytes, " bytes, at most ", max_bytes, " allowed"));
  }
  Fields fields(name);
  auto value = unpack(*body, fields);
  if (!fields.ok()) return fields.status();
  return Message(std::move(value));
}

}  // namespace

Result<FromWorker> decode_from_worker(std::span<const std::byte> bytes) {
  using Body = fb::FromWorkerBody;
  const AlignedBytes aligned(bytes.first(std::min(bytes.size(), kMaxStepBytes)));
  ASSIGN_OR_RETURN(const auto* root,
                   (verified_root<fb::FromWorker>(bytes, aligned, kMaxStepBytes, "FromWorker")));
  const auto take_control = [&](const auto* body, std::string_view name) {
    return take<FromWorker>(body, name, bytes.size(), kMaxControlBytes);
  };
  switch (root->body_type()) {
    case Body::Hello:
      return take_control(root->body_as_Hello(), "Hello");
    case Body::LoadProgress:
      return take_control(root->body_as_LoadProgress(), "LoadProgress");
    case Body::Loaded:
      return take_control(root->body_as_Loaded(), "Loaded");
    case Body::Ready:
      return take_control(root->body_as_Ready(), "Ready");
    case Body::Failed:
      return take_control(root->body_as_Failed(), "Failed");
    case Body::Heartbeat:
      return take_control(root->body_as_Heartbeat(), "Heartbeat");
    case Body::Goodbye:
      return take_control(root->body_as_Goodbye(), "Goodbye");
    case Body::StepResult:
      return take<FromWorker>(root->body_as_StepResult(), "StepResult", bytes.size(),
                              kMaxStepBytes);
    case Body::StageTimes:
      return take_control(root->body_as_StageTimes(), "StageTimes");
    case Body::NONE:
      break;
  }
  return data_loss(str_cat("FromWorker.body is of unknown kind ",
                           +static_cast<std::uint8_t>(root->body_type())));
}

Result<ToWorker> decode_to_worker(std::span<const std::byte> bytes) {
  using Body = fb::ToWorkerBody;
  const AlignedBytes aligned(bytes.first(std::min(bytes.size(), kMaxStepBytes)));
  ASSIGN_OR_RETURN(const auto* root,
                   (verified_root<fb::ToWorker>(bytes, aligned, kMaxStepBytes, "ToWorker")));
  const auto take_control = [&](const auto* body, std::string_view name) {
    return take<ToWorker>(body, name, bytes.size(), kMaxControlBytes);
  };
  switch (root->body_type()) {
    case Body::Assign:
      return take_control(root->body_as_Assign(), "Assign");
    case Body::Start:
      return take_control(root->body_as_Start(), "Start");
    case Body::Abort:
      return take_control(root->body_as_Abort(), "Abort");
    case Body::Release:
      return take_control(root->body_as_Release(), "Release");
    case Body::HeartbeatAck:
      return take_control(root->body_as_HeartbeatAck(), "HeartbeatAck");
    case Body::StepCommand:
      return take<ToWorker>(root->body_as_StepCommand(), "StepCommand", bytes.size(),
                            kMaxStepBytes);
    case Body::NONE:
      break;
  }
  return data_loss(
      str_cat("ToWorker.body is of unknown kind ", +static_cast<std::uint8_t>(root->body_type())));
}

Result<StageLinkMessage> decode_stage_link(std::span<const std::byte> bytes) {
  using Body = fb::StageLinkBody;
  const AlignedBytes aligned(bytes.first(std::min(bytes.size(), kMaxStepBytes)));
  ASSIGN_OR_RETURN(const auto* root,
                   (verified_root<fb::StageLink>(bytes, aligned, kMaxStepBytes, "StageLink")));
  switch (root->body_type()) {
    case Body::Activations:
      return take<StageLinkMessage>(root->body_as_Activations(), "Activations", bytes.size(),
                                    kMaxControlBytes);
    case Body::SampledTokens:
      return take<StageLinkMessage>(root->body_as_SampledTokens(), "SampledTokens", bytes.size(),
                                    kMaxStepBytes);
    case Body::NONE:
      break;
  }
  return data_loss(
      str_cat("StageLink.body is of unknown kind ", +static_cast<std::uint8_t>(root->body_type())));
}

}  // namespace brigade::wire
