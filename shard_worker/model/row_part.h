// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/op.h"
#include "shard_worker/core/step_inputs.h"
#include "shard_worker/model/logit_controls.h"

namespace brigade::worker {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// A token that may be drawn.
struct Candidate {
  float logit = 0;  ///< as penalties, biases and the mask left it
  float raw = 0;    ///< as the model gave it
  std::int32_t token = 0;
};

/// By falling logit, equal ones by rising id: a total order.
[[nodiscard]] inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/// What one rank finds in its share of one row's logits: all that the ranks need of each other to
/// score a token, and nearly always all they need to draw one.
struct RowPart {
  bool finite = true;
  float raw_peak = kMinusInfinity;
  double raw_sum = 0;             ///< of exp(raw - raw_peak); with log-probabilities
  float target = kMinusInfinity;  ///< raw logit of the row's target, where it is in this share
  float peak = kMinusInfinity;    ///< of the logits that may be drawn
  double weight_sum = 0;  ///< of w = exp(x), x = (logit - peak) / temperature; where it is needed
  double moment = 0;      ///< of w * x
  bool complete = false;  ///< `candidates` are all that may be drawn
  std::vector<Candidate> top;         ///< best by raw logit, as many as are asked for
  std::vector<Candidate> candidates;  ///< best first; of a greedy row the one
};

/// Most candidates of a row and a rank: few tokens carry nearly all probability.
inline constexpr std::size_t kMaxCandidates = 256;

/// Log-probabilities asked for this row: -1 none, 0 its own, else so many of the best.
[[nodiscard]] inline std::int32_t num_logprobs(const ScoreRow& row) {
  return row.sample ? row.params->num_logprobs : row.params->num_prompt_logprobs;
}
[[nodiscard]] inline bool draws(const ScoreRow& row) {
  return row.sample && row.params->temperature > 0;
}

/// Whether more is wanted of a row than its target's log-probability.
[[nodiscard]] inline bool needs_logits(const ScoreRow& row) {
  return row.sample || num_logprobs(row) != 0;
}

/// All there is to a row that needs no logits.
void take_sum(const kernels::LogitSum& sum, RowPart& part);

/// Looks through the share `vocab` of a row's logits. First `look_raw`, while they are as the model
/// gave them (`sum` counts only where log-probabilities are asked for); then, once controls and
/// mask are applied, `look_allowed` for a row that samples: `raw` has what was changed.
void look_raw(const ScoreRow& row, Range vocab, std::span<const float> logits,
              const kernels::LogitSum& sum, RowPart& part);
void look_allowed(const ScoreRow& row, Range vocab, std::span<const float> logits,
                  std::vector<RawLogit>& raw, RowPart& part);

/// A RowPart as floats, to be gathered: the size is the same on every rank. Nothing is converted.
[[nodiscard]] std::size_t packed_floats(const ScoreRow& row);
void pack(const RowPart& part, std::span<float> floats);
void unpack(std::span<const float> floats, RowPart& part);

}  // namespace brigade::worker
