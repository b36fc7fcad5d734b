// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "shard_worker/device/engine.h"
#include "shard_worker/model/draw.h"
#include "shard_worker/model/row_part.h"

namespace brigade::worker {

/// One row over the whole vocabulary, on the rank that decides.
class JointRow final {
 public:
  /// Puts together what the ranks found; `parts` in rank order.
  void join(const ScoreRow& row, std::span<const RowPart> parts);

  /// Draws, where the row samples. False when only the whole row can tell.
  [[nodiscard]] bool decide(const ScoreRow& row);
  /// As decide, from all logits as penalties, biases and the mask left them: [vocab_size].
  void decide_from(const ScoreRow& row, std::span<const float> logits);
  /// After decide_from: the drawn token's logit as the model gave it.
  void set_raw(std::span<const float> logits);

  [[nodiscard]] ScoredToken result(const ScoreRow& row) const;

 private:
  void join_candidates(std::span<const RowPart> parts);
  [[nodiscard]] std::optional<Candidate> draw_from_list(const ScoreRow& row);

  bool finite_ = true;
  float raw_peak_ = kMinusInfinity;
  double raw_sum_ = 0;
  float target_ = kMinusInfinity;
  DrawWeights weights_;
  std::vector<Candidate> top_;
  CandidateList list_;
  std::optional<Candidate> drawn_;
};

}  // namespace brigade::worker
