// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/core/sequence_table.h"

#include <cmath>
#include <string_view>

#include "common/base/strings.h"

namespace brigade::worker {
namespace {

constexpr std::int32_t kMaxTopLogprobs = 20;
constexpr float kMaxShift = 1000;  // of a logit, by a bias or a penalty
constexpr std::uint8_t kKnownFlags =
    wire::kTokenFromSample | wire::kSampleToken | wire::kScorePrompt;

Status check_length(std::string_view field, std::size_t length, std::size_t wanted) {
  if (length == wanted) return {};
  return invalid_argument(
      str_cat("step command: ", field, " has ", length, " entries, not ", wanted));
}

/// cu must start at 0, never fall, and end at the length of what it divides.
Status check_cu(std::string_view field, const std::vector<std::uint32_t>& cu, std::size_t num_seqs,
                std::size_t total) {
  RETURN_IF_ERROR(check_length(field, cu.size(), num_seqs + 1));
  if (cu.front() != 0) {
    return invalid_argument(str_cat("step command: ", field, "[0] is ", cu.front(), ", not 0"));
  }
  for (std::size_t i = 1; i < cu.size(); ++i) {
    if (cu[i] < cu[i - 1]) {
      return invalid_argument(
          str_cat("step command: ", field, '[', i, "] falls from ", cu[i - 1], " to ", cu[i]));
    }
  }
  if (cu.back() != total) {
    return invalid_argument(
        str_cat("step command: ", field, " ends at ", cu.back(), ", not at ", total));
  }
  return {};
}

template <typename... Args>
Status bad_sequence(std::uint32_t seq, const Args&... what) {
  return invalid_argument(str_cat("step command: sequence ", seq, ": ", what...));
}

void clear(StepInputs& inputs) {
  inputs.tokens.clear();
  inputs.positions.clear();
  inputs.slot_mapping.clear();
  inputs.cu_seqlens_q.assign(1, 0);
  inputs.context_lens.clear();
  inputs.cu_blocks.assign(1, 0);
  inputs.block_tables.clear();
  inputs.score_rows.clear();
  inputs.admitted.clear();
  inputs.pending_tokens.clear();
  inputs.block_copies.clear();
}

}  // namespace

SequenceTable::SequenceTable(const SequenceLimits& limits)
    : limits_(limits), slots_(limits.max_seqs) {
  INVARIANT_LE(limits.num_kv_blocks, kMaxKvBlocks);
}

Status SequenceTable::apply(const wire::StepCommand& command, StepInputs& inputs) {
  if (!broken_.ok()) return broken_.with_context("an earlier command failed");
  broken_ = apply_all(command, inputs);
  return broken_;
}

Status SequenceTable::check_header(const wire::StepCommand& command) const {
  if (command.epoch != limits_.epoch) {
    return invalid_argument(
        str_cat("step command: epoch ", command.epoch, ", not ", limits_.epoch));
  }
  if (has_step_ && command.step != last_step_ + 1) {
    return invalid_argument(
        str_cat("step command: step ", command.step, " does not follow ", last_step_));
  }
  const std::size_t num_seqs = command.num_seqs();
  if (num_seqs > limits_.max_seqs) {
    return invalid_argument(
        str_cat("step command: ", num_seqs, " sequences, at most ", limits_.max_seqs));
  }
  if (command.tokens.size() > limits_.max_step_tokens) {
    return invalid_argument(str_cat("step command: ", command.tokens.size(), " tokens, at most ",
                                    limits_.max_step_tokens));
  }
  RETURN_IF_ERROR(check_length("position", command.position.size(), num_seqs));
  RETURN_IF_ERROR(check_length("flags", command.flags.size(), num_seqs));
  RETURN_IF_ERROR(check_length("next_token", command.next_token.size(), num_seqs));
  RETURN_IF_ERROR(check_cu("cu_tokens", command.cu_tokens, num_seqs, command.tokens.size()));
  return check_cu("cu_blocks", command.cu_blocks, num_seqs, command.blocks.size());
}

Status SequenceTable::check_admit(const wire::SequenceAdmit& admit) const {
  if (admit.seq >= limits_.max_seqs) {
    return bad_sequence(admit.seq, "admitted, but there are ", limits_.max_seqs, " slots");
  }
  if (slots_[admit.seq].open) return bad_sequence(admit.seq, "admitted twice");
  if (!std::isfinite(admit.temperature) || admit.temperature < 0) {
    return bad_sequence(admit.seq, "temperature ", admit.temperature, " is not in [0, inf)");
  }
  if (!(admit.top_p > 0 && admit.top_p <= 1)) {
    return bad_sequence(admit.seq, "top_p ", admit.top_p, " is not in (0, 1]");
  }
  if (admit.top_k < 0) return bad_sequence(admit.seq, "top_k ", admit.top_k, " is negative");
  for (std::int32_t count : {admit.num_logprobs, admit.num_prompt_logprobs}) {
    if (count < -1 || count > kMaxTopLogprobs) {
      return bad_sequence(admit.seq, count, " logprobs, not in [-1, ", kMaxTopLogprobs, ']');
    }
  }
  RETURN_IF_ERROR(check_tokens(admit.seq, "banned", admit.banned_tokens));
  return admit.controls == nullptr ? Status() : check_controls(admit.seq, *admit.controls);
}

Status SequenceTable::check_tokens(std::uint32_t seq, std::string_view what,
                                   const std::vector<std::int32_t>& tokens) const {
  for (const std::int32_t token : tokens) {
    if (in_vocabulary(token)) continue;
    return bad_sequence(seq, what, " token ", token, " is not in the vocabulary of ",
                        limits_.vocab_size);
  }
  return {};
}

Status SequenceTable::check_controls(std::uint32_t seq,
                                     const wire::SamplingControls& controls) const {
  const auto outside = [](float value, float low, float high) {
    return !(value >= low && value <= high);
  };
  if (outside(controls.min_p, 0, 1)) return bad_sequence(seq, "min_p ", controls.min_p);
  if (outside(controls.typical_p, 1e-30F, 1)) {
    return bad_sequence(seq, "typical_p ", controls.typical_p, " is not in (0, 1]");
  }
  if (outside(controls.repetition_penalty, 1e-3F, 1e3F)) {
    return bad_sequence(seq, "repetition_penalty ", controls.repetition_penalty,
                        " is not in [0.001, 1000]");
  }
  for (const float penalty : {controls.presence_penalty, controls.frequency_penalty}) {
    if (outside(penalty, -kMaxShift, kMaxShift)) return bad_sequence(seq, "penalty ", penalty);
  }
  for (const wire::TokenBias& bias : controls.bias) {
    if (!in_vocabulary(bias.token) || outside(bias.bias, -kMaxShift, kMaxShift)) {
      return bad_sequence(seq, "bias ", bias.bias, " of token ", bias.token);
    }
  }
  RETURN_IF_ERROR(check_tokens(seq, "allowed", controls.allowed_tokens));
  for (const std::vector<std::int32_t>& word : controls.bad_words) {
    if (word.empty()) return bad_sequence(seq, "an empty bad word");
    RETURN_IF_ERROR(check_tokens(seq, "bad word's", word));
  }
  RETURN_IF_ERROR(check_tokens(seq, "prompt", controls.prompt_tokens));
  return check_tokens(seq, "output", controls.output_tokens);
}

Status SequenceTable::release_and_admit(const wire::StepCommand& command, StepInputs& inputs) {
  for (std::uint32_t seq : command.release) {
    if (seq >= limits_.max_seqs || !slots_[seq].open) {
      return bad_sequence(seq, "released, but it is not open");
    }
    slots_[seq].open = false;
    slots_[seq].block_table.clear();
    --num_open_;
  }
  for (const wire::SequenceAdmit& admit : command.admit) {
    RETURN_IF_ERROR(check_admit(admit));
    Slot& slot = slots_[admit.seq];
    slot.open = true;
    slot.started = false;
    slot.sampled = false;
    slot.params = admit;
    inputs.admitted.push_back(&slot.params);
    ++num_open_;
  }
  return {};
}

Status SequenceTable::append_copies(const wire::StepCommand& command, StepInputs& inputs) const {
  RETURN_IF_ERROR(check_length("copy_to", command.copy_to.size(), command.copy_from.size()));
  if (command.copy_from.size() > limits_.max_seqs) {
    return invalid_argument(str_cat("step command: ", command.copy_from.size(),
                                    " block copies, at most ", limits_.max_seqs));
  }
  for (std::size_t i = 0; i < command.copy_from.size(); ++i) {
    const std::uint32_t from = command.copy_from[i];
    const std::uint32_t to = command.copy_to[i];
    if (from >= limits_.num_kv_blocks || to >= limits_.num_kv_blocks || from == to) {
      return invalid_argument(str_cat("step command: block ", from, " is copied to ", to,
                                      ", there are ", limits_.num_kv_blocks));
    }
    inputs.block_copies.push_back(
        {.from = static_cast<std::int32_t>(from), .to = static_cast<std::int32_t>(to)});
  }
  return {};
}

Status SequenceTable::check_chunk(const wire::StepCommand& command, const Chunk& chunk) const {
  const std::uint32_t seq = chunk.seq;
  if (seq >= limits_.max_seqs || !slots_[seq].open) {
    return bad_sequence(seq, "in a step, but it is not open");
  }
  const Slot& slot = slots_[seq];
  if (slot.started && slot.last_step == command.step) return bad_sequence(seq, "twice in a step");
  if (slot.started && chunk.position != slot.next_position) {
    return bad_sequence(seq, "position ", chunk.position, " does not continue at ",
                        slot.next_position);
  }
  if (chunk.num_tokens == 0) return bad_sequence(seq, "no tokens");
  if ((chunk.flags & ~kKnownFlags) != 0) return bad_sequence(seq, "unknown flags ", +chunk.flags);
  const bool from_sample = (chunk.flags & wire::kTokenFromSample) != 0;
  const bool scores = (chunk.flags & wire::kScorePrompt) != 0;
  if (from_sample && (chunk.num_tokens != 1 || scores || !slot.started || !slot.sampled)) {
    return bad_sequence(seq, "token from sample with ", chunk.num_tokens, " tokens, flags ",
                        +chunk.flags, slot.started && slot.sampled ? "" : " and no sample before");
  }
  const std::uint32_t begin = command.cu_tokens[chunk.index];
  for (std::uint32_t i = 0; i < chunk.num_tokens; ++i) {
    const std::int32_t token = command.tokens[begin + i];
    if (from_sample ? token != -1 : !in_vocabulary(token)) {
      return bad_sequence(seq, "token ", token,
                          from_sample ? ", not -1" : " is not in the vocabulary of ",
                          from_sample ? 0 : limits_.vocab_size);
    }
  }
  const bool has_next = chunk.next_token != -1;
  if (has_next && (!scores || (chunk.flags & wire::kSampleToken) != 0)) {
    return bad_sequence(seq, "next_token ", chunk.next_token, " with flags ", +chunk.flags);
  }
  if (has_next && !in_vocabulary(chunk.next_token)) {
    return bad_sequence(seq, "next_token ", chunk.next_token, " is not in the vocabulary of ",
                        limits_.vocab_size);
  }
  return {};
}

Status SequenceTable::append_blocks(const wire::StepCommand& command, const Chunk& chunk) {
  Slot& slot = slots_[chunk.seq];
  const std::uint32_t begin = command.cu_blocks[chunk.index];
  const std::uint32_t end = command.cu_blocks[chunk.index + 1];
  if (slot.block_table.size() + (end - begin) > limits_.num_kv_blocks) {
    return bad_sequence(chunk.seq, "block table of ", slot.block_table.size() + (end - begin),
                        " blocks, there are ", limits_.num_kv_blocks);
  }
  for (std::uint32_t i = begin; i < end; ++i) {
    if (command.blocks[i] >= limits_.num_kv_blocks) {
      return bad_sequence(chunk.seq, "block ", command.blocks[i], ", there are ",
                          limits_.num_kv_blocks);
    }
    slot.block_table.push_back(static_cast<std::int32_t>(command.blocks[i]));
  }
  const std::uint64_t needed = std::uint64_t{chunk.position} + chunk.num_tokens;
  const std::uint64_t room = std::uint64_t{slot.block_table.size()} * wire::kBlockSize;
  if (needed > room) {
    return bad_sequence(chunk.seq, needed, " tokens do not fit its ", slot.block_table.size(),
                        " blocks of ", wire::kBlockSize);
  }
  return {};
}

void SequenceTable::append_rows(const wire::StepCommand& command, const Chunk& chunk,
                                StepInputs& inputs) {
  const Slot& slot = slots_[chunk.seq];
  const std::uint32_t begin = command.cu_tokens[chunk.index];
  if ((chunk.flags & wire::kTokenFromSample) != 0) {
    inputs.pending_tokens.push_back({.row = static_cast<std::int32_t>(inputs.tokens.size()),
                                     .seq = chunk.seq,
                                     .step = slot.last_step});
  }
  constexpr auto block_size = static_cast<std::int32_t>(wire::kBlockSize);
  for (std::uint32_t i = 0; i < chunk.num_tokens; ++i) {
    // Fits: append_blocks has checked position + num_tokens against at most kMaxKvBlocks blocks.
    const auto position = static_cast<std::int32_t>(chunk.position + i);
    const std::int32_t block = slot.block_table[static_cast<std::size_t>(position / block_size)];
    inputs.tokens.push_back(command.tokens[begin + i]);
    inputs.positions.push_back(position);
    inputs.slot_mapping.push_back(block * block_size + position % block_size);
  }
  inputs.cu_seqlens_q.push_back(static_cast<std::int32_t>(inputs.tokens.size()));
  inputs.context_lens.push_back(static_cast<std::int32_t>(chunk.position + chunk.num_tokens));
  // Only the blocks that attention reads: one appended ahead of need stays out.
  const std::size_t num_blocks =
      (chunk.position + chunk.num_tokens + wire::kBlockSize - 1) / wire::kBlockSize;
  inputs.block_tables.insert(inputs.block_tables.end(), slot.block_table.begin(),
                             slot.block_table.begin() + static_cast<std::ptrdiff_t>(num_blocks));
  inputs.cu_blocks.push_back(static_cast<std::int32_t>(inputs.block_tables.size()));
}

void SequenceTable::append_score_rows(const wire::StepCommand& command, const Chunk& chunk,
                                      StepInputs& inputs) {
  const std::uint32_t begin = command.cu_tokens[chunk.index];
  const auto first_row = static_cast<std::int32_t>(inputs.tokens.size() - chunk.num_tokens);
  ScoreRow score{.seq = chunk.seq, .params = &slots_[chunk.seq].params};
  if ((chunk.flags & wire::kScorePrompt) != 0) {
    for (std::uint32_t i = 0; i < chunk.num_tokens; ++i) {
      const bool last = i + 1 == chunk.num_tokens;
      score.target = last ? chunk.next_token : command.tokens[begin + i + 1];
      if (score.target == -1) continue;  // the prompt ends here
      score.row = first_row + static_cast<std::int32_t>(i);
      score.position = chunk.position + i + 1;
      inputs.score_rows.push_back(score);
    }
  }
  if ((chunk.flags & wire::kSampleToken) != 0) {
    score.target = -1;
    score.sample = true;
    score.row = first_row + static_cast<std::int32_t>(chunk.num_tokens) - 1;
    score.position = chunk.position + chunk.num_tokens;
    inputs.score_rows.push_back(score);
  }
}

Status SequenceTable::apply_chunk(const wire::StepCommand& command, const Chunk& chunk,
                                  StepInputs& inputs) {
  RETURN_IF_ERROR(check_chunk(command, chunk));
  RETURN_IF_ERROR(append_blocks(command, chunk));
  append_rows(command, chunk, inputs);
  append_score_rows(command, chunk, inputs);
  Slot& slot = slots_[chunk.seq];
  slot.started = true;
  slot.sampled = (chunk.flags & wire::kSampleToken) != 0;
  slot.next_position = chunk.position + chunk.num_tokens;
  slot.last_step = command.step;
  return {};
}

Status SequenceTable::apply_all(const wire::StepCommand& command, StepInputs& inputs) {
  RETURN_IF_ERROR(check_header(command));
  clear(inputs);
  RETURN_IF_ERROR(release_and_admit(command, inputs));
  inputs.epoch = command.epoch;
  inputs.step = command.step;
  inputs.lane = command.lane;
  inputs.plan_hash = wire::plan_hash(command);
  RETURN_IF_ERROR(append_copies(command, inputs));
  for (std::size_t i = 0; i < command.num_seqs(); ++i) {
    const Chunk chunk{.index = i,
                      .seq = command.seq[i],
                      .position = command.position[i],
                      .num_tokens = command.cu_tokens[i + 1] - command.cu_tokens[i],
                      .flags = command.flags[i],
                      .next_token = command.next_token[i]};
    RETURN_IF_ERROR(apply_chunk(command, chunk, inputs));
  }
  has_step_ = true;
  last_step_ = command.step;
  return {};
}

}  // namespace brigade::worker
