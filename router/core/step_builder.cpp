// SPDX-License-Identifier: Apache-2.0
#include "router/core/step_builder.h"

#include <algorithm>
#include <memory>

#include "common/base/check.h"
#include "router/core/planted_bug.h"

namespace brigade::router {
namespace {

/// Of token lists that tell ranks how to sample, in one command: a quarter of the largest message.
constexpr std::size_t kMaxControlTokens = std::size_t{1} << 18;

bool has_controls(const wire::GenerationParams& params) {
  return params.min_p > 0 || params.typical_p < 1 || params.repetition_penalty != 1 ||
         params.presence_penalty != 0 || params.frequency_penalty != 0 ||
         !params.logit_bias.empty() || !params.allowed_token_ids.empty() ||
         !params.bad_words.empty();
}

/// At most, of the lists in the request's controls.
std::size_t num_control_tokens(const LiveRequest& request) {
  if (!has_controls(request.params)) return 0;
  std::size_t count = request.tokens.size() + 2 * request.params.logit_bias.size() +
                      request.params.allowed_token_ids.size();
  for (const std::vector<std::int32_t>& word : request.bad_words)
    count += word.size() + 1;
  return count;
}

/// Null when the request asks for none. The tokens so far go along only where they count.
std::shared_ptr<const wire::SamplingControls> make_controls(const LiveRequest& request) {
  const wire::GenerationParams& params = request.params;
  if (!has_controls(params)) return nullptr;
  wire::SamplingControls controls{.min_p = params.min_p,
                                  .typical_p = params.typical_p,
                                  .repetition_penalty = params.repetition_penalty,
                                  .presence_penalty = params.presence_penalty,
                                  .frequency_penalty = params.frequency_penalty,
                                  .bias = params.logit_bias,
                                  .allowed_tokens = params.allowed_token_ids,
                                  .bad_words = request.bad_words};
  const auto prompt_end = request.tokens.begin() + request.num_prompt;
  if (controls.needs_output()) controls.output_tokens.assign(prompt_end, request.tokens.end());
  if (controls.repetition_penalty != 1) {
    std::vector<std::int32_t>& distinct = controls.prompt_tokens;
    distinct.assign(request.tokens.begin(), prompt_end);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  }
  return std::make_shared<wire::SamplingControls>(std::move(controls));
}

}  // namespace

StepBuilder::StepBuilder(wire::StepCommand& command, FlightStep& flight, std::uint64_t epoch,
                         std::uint64_t step, std::uint32_t lane, std::size_t num_seqs)
    : command_(command), flight_(flight) {
  command_ = {};
  command_.epoch = epoch;
  command_.step = step;
  command_.lane = lane;
  command_.seq.reserve(num_seqs);
  command_.position.reserve(num_seqs);
  command_.flags.reserve(num_seqs);
  command_.next_token.reserve(num_seqs);
  command_.cu_tokens.reserve(num_seqs + 1);
  command_.tokens.reserve(num_seqs);
  command_.cu_blocks.reserve(num_seqs + 1);
  command_.cu_tokens.push_back(0);
  command_.cu_blocks.push_back(0);
  flight_.step = step;
  flight_.lane = lane;
  flight_.num_decodes = 0;
  flight_.num_prefill_rows = 0;
  flight_.items.clear();
}

void StepBuilder::add_decode(std::uint32_t slot, Sequence& sequence) {
  const bool known = sequence.scheduled < sequence.num_known;
  command_.tokens.push_back(known ? sequence.request->tokens[sequence.scheduled] : -1);
  const std::uint8_t source = known ? 0 : wire::kTokenFromSample;
  ++flight_.num_decodes;
  add(slot, sequence, 1, wire::kSampleToken | source, /*next_token=*/-1);
}

void StepBuilder::add_chunk(std::uint32_t slot, Sequence& sequence, std::uint32_t num_tokens) {
  const std::vector<std::int32_t>& tokens = sequence.request->tokens;
  const std::uint32_t end = sequence.scheduled + num_tokens;
  INVARIANT_LE(end, sequence.prefill_end);
  command_.tokens.insert(command_.tokens.end(), tokens.begin() + sequence.scheduled,
                         tokens.begin() + end);
  std::uint8_t flags = 0;
  std::int32_t next_token = -1;
  if (sequence.scoring) {
    flags |= wire::kScorePrompt;
    if (end < tokens.size()) next_token = tokens[end];
  }
  if (end == sequence.prefill_end && !sequence.request->only_scores()) flags |= wire::kSampleToken;
  flight_.num_prefill_rows += num_tokens;
  add(slot, sequence, num_tokens, flags, next_token);
}

void StepBuilder::add_copy(std::uint32_t from, std::uint32_t to) {
  command_.copy_from.push_back(from);
  command_.copy_to.push_back(to);
}

bool StepBuilder::has_room_for(const Sequence& sequence) const {
  if (sequence.admit_sent || num_control_tokens_ == 0) return true;
  return num_control_tokens_ + num_control_tokens(*sequence.request) <= kMaxControlTokens;
}

void StepBuilder::add(std::uint32_t slot, Sequence& sequence, std::uint32_t num_tokens,
                      std::uint8_t flags, std::int32_t next_token) {
  if (!sequence.admit_sent) admit(slot, sequence);
  const std::uint32_t end = sequence.scheduled + num_tokens;
  command_.seq.push_back(slot);
  command_.position.push_back(sequence.scheduled);
  command_.flags.push_back(flags);
  command_.next_token.push_back(next_token);
  command_.cu_tokens.push_back(static_cast<std::uint32_t>(command_.tokens.size()));
  const std::uint32_t num_blocks = (end + wire::kBlockSize - 1) / wire::kBlockSize;
  INVARIANT_LE(num_blocks, sequence.blocks.size());
  for (; sequence.num_blocks_sent < num_blocks; ++sequence.num_blocks_sent) {
    command_.blocks.push_back(sequence.blocks[sequence.num_blocks_sent]);
  }
  command_.cu_blocks.push_back(static_cast<std::uint32_t>(command_.blocks.size()));
  FlightStep::Item item{.slot = slot,
                        .position = sequence.scheduled,
                        .num_tokens = num_tokens,
                        .flags = flags,
                        .has_next = next_token != -1};
  item.ends_scoring = (flags & wire::kScorePrompt) != 0 && end == sequence.prefill_end;
  flight_.items.push_back(item);
  const bool is_chunk = end < sequence.prefill_end;
  sequence.scheduled = end + (planted(PlantedBug::kSkipToken) && is_chunk ? 1 : 0);
  sequence.last_step = command_.step;
  ++sequence.steps_in_flight;
  if (item.samples()) ++sequence.samples_in_flight;
}

void StepBuilder::admit(std::uint32_t slot, Sequence& sequence) {
  LiveRequest& request = *sequence.request;
  if (!request.was_started) request.cached_tokens = sequence.scheduled;
  request.was_started = true;
  const wire::GenerationParams& params = request.params;
  wire::SequenceAdmit admit{
      .seq = slot,
      .seed = request.seed,
      .temperature = params.temperature,
      .top_p = params.top_p,
      .top_k = params.top_k,
      .num_logprobs = params.num_logprobs,
      .num_prompt_logprobs = sequence.scoring ? params.num_prompt_logprobs : -1,
  };
  const std::uint32_t unbanned = request.num_prompt + params.min_tokens;
  if (request.tokens.size() < unbanned) {
    admit.banned_until_position = unbanned;
    admit.banned_tokens = request.stream->banned_tokens();
  }
  admit.controls = make_controls(request);
  num_control_tokens_ += num_control_tokens(request);
  command_.admit.push_back(std::move(admit));
  sequence.admit_sent = true;
}

}  // namespace brigade::router
