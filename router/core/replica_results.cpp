// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "router/core/planted_bug.h"
#include "router/core/replica.h"

namespace brigade::router {
namespace {

wire::OutputToken entry_token(const wire::StepResult& result, std::size_t entry) {
  wire::OutputToken token{.token = result.token[entry]};
  if (!std::isnan(result.logprob[entry])) token.logprob = result.logprob[entry];
  for (std::uint32_t i = result.cu_top[entry]; i < result.cu_top[entry + 1]; ++i) {
    token.top.push_back({.token = result.top_tokens[i], .logprob = result.top_logprobs[i]});
  }
  return token;
}

/// What is wrong with entries [first, end) of one request: its own fault, not its replica's.
Status fault_of(const wire::StepResult& result, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    if ((result.sampled[i] & wire::kLogitsNotFinite) != 0) {
      return internal_error(str_cat("the model's logits for position ", result.position[i],
                                    " are not finite: the request cannot go on"));
    }
    if ((result.sampled[i] & wire::kNothingAllowed) != 0) {
      return invalid_argument(
          str_cat("no token may come out at position ", result.position[i],
                  ": allowed_token_ids, bad_words and min_tokens forbid all of them together"));
    }
  }
  return {};
}

Status check_shape(const wire::StepResult& result) {
  const std::size_t count = result.seq.size();
  if (result.position.size() != count || result.token.size() != count ||
      result.sampled.size() != count || result.logprob.size() != count ||
      result.cu_top.size() != count + 1 || result.top_tokens.size() != result.top_logprobs.size() ||
      result.cu_top.front() != 0 || result.cu_top.back() != result.top_tokens.size() ||
      !std::is_sorted(result.cu_top.begin(), result.cu_top.end())) {
    return data_loss(str_cat("result of step ", result.step, ": its lists disagree in length"));
  }
  return {};
}

}  // namespace

Status Replica::check_result(const wire::StepResult& result) const {
  if (flight_.empty()) {
    return data_loss(str_cat("result of step ", result.step, ", but no step is in flight"));
  }
  const FlightStep& flight = flight_.front();
  if (result.epoch != options_.epoch || result.step != flight.step || result.lane != flight.lane) {
    return data_loss(str_cat("result of epoch ", result.epoch, " step ", result.step, " lane ",
                             result.lane, ", but epoch ", options_.epoch, " step ", flight.step,
                             " lane ", flight.lane, " is owed"));
  }
  if (result.plan_hash != flight.plan_hash) {
    return data_loss(str_cat("step ", result.step, " was run by plan hash ", result.plan_hash,
                             ", but ", flight.plan_hash, " was sent"));
  }
  RETURN_IF_ERROR(check_shape(result));
  std::size_t entry = 0;
  for (const FlightStep::Item& item : flight.items) {
    const std::uint32_t num_scored = item.num_scored();
    const std::uint32_t num_entries = num_scored + (item.samples() ? 1 : 0);
    for (std::uint32_t i = 0; i < num_entries; ++i, ++entry) {
      const bool sampled = i == num_scored;
      const std::uint32_t position = item.position + (sampled ? item.num_tokens : i + 1);
      if (entry >= result.seq.size() || result.seq[entry] != item.slot ||
          result.position[entry] != position ||
          ((result.sampled[entry] & wire::kSampledEntry) != 0) != sampled ||
          result.token[entry] < 0 || result.token[entry] >= options_.vocab_size) {
        return data_loss(str_cat("result of step ", result.step, ": entry ", entry, " is not the ",
                                 sampled ? "sample" : "scored token", " of sequence ", item.slot,
                                 " at position ", position));
      }
    }
  }
  if (entry != result.seq.size()) {
    return data_loss(str_cat("result of step ", result.step, ": ", result.seq.size(), " entries, ",
                             entry, " expected"));
  }
  return {};
}

Status Replica::on_result(const wire::StepResult& result, TimePoint now, ResultSink& sink) {
  RETURN_IF_ERROR(check_result(result));
  FlightStep flight = std::move(flight_.front());
  flight_.pop_front();
  last_result_ = now;
  ++num_steps_ended_;
  --lanes_[flight.lane].in_flight;
  for (const FlightStep::Item& item : flight.items) {
    Sequence& sequence = sequences_[item.slot];
    --sequence.steps_in_flight;
    if (item.samples()) --sequence.samples_in_flight;
  }
  apply_entries(result, flight, sink);
  pool_.step_ended(flight.step);
  for (const FlightStep::Item& item : flight.items) {
    Sequence& sequence = sequences_[item.slot];
    if (sequence.steps_in_flight > 0) continue;
    if (sequence.in_use && sequence.request == nullptr) close(item.slot);
    if (sequence.request == nullptr || !sequence.moving_to) continue;
    leave_lane(item.slot);
    join_lane(*std::exchange(sequence.moving_to, std::nullopt), item.slot);
  }
  step_cost_.add(flight.num_decodes, flight.num_prefill_rows, result.compute_us);
  tune_lanes(result, now);
  rebalance();
  spare_flights_.push_back(std::move(flight));
  return {};
}

void Replica::apply_entries(const wire::StepResult& result, const FlightStep& flight,
                            ResultSink& sink) {
  std::size_t entry = 0;
  for (const FlightStep::Item& item : flight.items) {
    const std::size_t first = entry;
    entry += item.num_scored() + (item.samples() ? 1 : 0);
    LiveRequest* request = sequences_[item.slot].request;
    if (request == nullptr) continue;
    if (Status fault = fault_of(result, first, entry); !fault.ok()) {
      sink.on_fault(*request, std::move(fault));
      continue;
    }
    if ((item.flags & wire::kScorePrompt) != 0) {
      std::vector<wire::OutputToken>& scores = request->prompt_scores;
      if (scores.empty()) scores.push_back({.token = request->tokens[0]});
      for (std::uint32_t i = 0; i < item.num_scored(); ++i) {
        scores.push_back(entry_token(result, first + i));
      }
      if (item.ends_scoring) {
        sequences_[item.slot].scoring = false;
        sink.on_prompt_scored(*request);
      }
    }
    if (!item.samples()) continue;
    const bool is_swapped = planted(PlantedBug::kSwapOutputs) && entry < result.seq.size();
    sink.on_sampled(*request, entry_token(result, is_swapped ? entry : entry - 1));
    Sequence& sequence = sequences_[item.slot];
    if (sequence.request != request) continue;
    ++sequence.num_known;
    note_filled(sequence);
  }
}

}  // namespace brigade::router
