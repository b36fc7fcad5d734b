// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/model/sampler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"

namespace brigade::worker {
namespace {

/// Logits that controls changed, back as they were; those that the mask took stay away.
void undo(const std::vector<RawLogit>& raw, Range vocab, std::span<float> logits) {
  // From the back: the first entry of a token is what it was at first.
  for (auto it = raw.rbegin(); it != raw.rend(); ++it) {
    float& logit = logits[static_cast<std::size_t>(it->token - vocab.begin)];
    if (logit != kMinusInfinity) logit = it->logit;
  }
}

}  // namespace

Sampler::Sampler(Partition vocab, std::int64_t tp_rank)
    : vocab_(std::move(vocab)),
      tp_rank_(static_cast<std::size_t>(tp_rank)),
      mask_(share()),
      own_(kMaxRows),
      raws_(kMaxRows),
      parts_(vocab_.size()) {
  if (tp_rank_ != 0) return;
  joint_.resize(kMaxRows);
  if (vocab_.size() > 1) whole_.resize(static_cast<std::size_t>(vocab_size()));
}

std::uint64_t Sampler::scratch_bytes(std::int64_t vocab_size) {
  // Rarely, a row's whole vocabulary: its logits, and as candidates.
  return static_cast<std::uint64_t>(vocab_size) * (sizeof(float) + sizeof(Candidate)) +
         kMaxRows * 2 * kMaxCandidates * sizeof(Candidate);
}

void Sampler::admit(const StepInputs& inputs) {
  for (const wire::SequenceAdmit* admit : inputs.admitted) {
    controls_.erase(admit->seq);
    if (admit->controls != nullptr) {
      controls_.emplace(admit->seq, LogitControls(admit->controls, share()));
    }
  }
}

LogitControls* Sampler::controls_of(const ScoreRow& row) {
  if (row.params->controls == nullptr) return nullptr;
  const auto at = controls_.find(row.seq);
  INVARIANT(at != controls_.end()) << "sequence " << row.seq << " was not admitted here";
  return &at->second;
}

Status Sampler::score(std::span<const ScoreRow> rows, std::span<const kernels::LogitSum> sums,
                      Collective& group, TimePoint deadline, std::vector<ScoredToken>& scored) {
  INVARIANT_EQ(rows.size(), sums.size());
  for (std::size_t begin = 0; begin < rows.size(); begin += kMaxRows) {
    const auto some = rows.subspan(begin, std::min(kMaxRows, rows.size() - begin));
    for (std::size_t i = 0; i < some.size(); ++i) {
      INVARIANT(!needs_logits(some[i])) << "row " << some[i].row;
      take_sum(sums[begin + i], own_[i]);
    }
    RETURN_IF_ERROR(gather_parts(some, group, deadline));
    if (tp_rank_ != 0) continue;
    INVARIANT_EQ(decide(some), 0U);
    for (std::size_t i = 0; i < some.size(); ++i)
      scored.push_back(joint_[i].result(some[i]));
  }
  return {};
}

Status Sampler::sample(std::span<const ScoreRow> rows, const kernels::Matrix& logits,
                       std::span<const kernels::LogitSum> sums, Collective& group,
                       TimePoint deadline, std::vector<ScoredToken>& scored) {
  INVARIANT_LE(rows.size(), kMaxRows);
  INVARIANT_EQ(rows.size(), sums.size());
  INVARIANT_EQ(static_cast<std::size_t>(group.size()), vocab_.size());
  const auto share_of = [&](std::size_t i) {
    return std::span(logits.row(static_cast<std::int64_t>(i)),
                     static_cast<std::size_t>(share().size()));
  };
  for (std::size_t i = 0; i < rows.size(); ++i)
    look(rows[i], i, share_of(i), sums[i]);
  RETURN_IF_ERROR(gather_parts(rows, group, deadline));
  std::uint32_t undecided = tp_rank_ == 0 ? decide(rows) : 0;
  if (group.size() > 1 && std::any_of(rows.begin(), rows.end(), draws)) {
    RETURN_IF_ERROR(group.broadcast(std::as_writable_bytes(std::span(&undecided, 1)), deadline));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if ((undecided >> i & 1) == 0) continue;
    RETURN_IF_ERROR(decide_from_all(rows[i], i, share_of(i), group, deadline));
  }
  const std::size_t first = scored.size();
  if (tp_rank_ == 0) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      scored.push_back(joint_[i].result(rows[i]));
  }
  return push_drawn(rows, std::span(scored).subspan(first), group, deadline);
}

/// Leaves in own_[index] what there is in this share.
void Sampler::look(const ScoreRow& row, std::size_t index, std::span<float> logits,
                   const kernels::LogitSum& sum) {
  INVARIANT(row.params != nullptr) << "row " << row.row;
  RowPart& part = own_[index];
  std::vector<RawLogit>& raw = raws_[index];
  raw.clear();
  look_raw(row, share(), logits, sum, part);
  if (!part.finite || !row.sample) return;
  LogitControls* controls = controls_of(row);
  const bool bans = row.position < row.params->banned_until_position;
  if (controls != nullptr) controls->adjust(logits, raw);
  if (controls != nullptr || bans) {
    mask_.allow_all();
    if (controls != nullptr) controls->mask(mask_);
    if (bans) {
      for (const std::int32_t token : row.params->banned_tokens)
        mask_.forbid(token);
    }
    mask_.apply(logits);
  }
  look_allowed(row, share(), logits, raw, part);
}

Status Sampler::gather_parts(std::span<const ScoreRow> rows, Collective& group,
                             TimePoint deadline) {
  if (group.size() == 1) return {};
  std::size_t floats = 0;
  for (const ScoreRow& row : rows)
    floats += packed_floats(row);
  packed_.resize(floats);
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t size = packed_floats(rows[i]);
    pack(own_[i], std::span(packed_).subspan(at, size));
    at += size;
  }
  if (tp_rank_ == 0) gathered_.resize(floats * vocab_.size());
  return group.gather(packed_, gathered_, deadline);
}

std::uint32_t Sampler::decide(std::span<const ScoreRow> rows) {
  std::uint32_t undecided = 0;
  const std::size_t floats = packed_.size();
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (vocab_.size() == 1) {
      joint_[i].join(rows[i], std::span(&own_[i], 1));
    } else {
      const std::size_t size = packed_floats(rows[i]);
      for (std::size_t rank = 0; rank < vocab_.size(); ++rank) {
        unpack(std::span(gathered_).subspan(rank * floats + at, size), parts_[rank]);
      }
      at += size;
      joint_[i].join(rows[i], parts_);
    }
    if (!joint_[i].decide(rows[i])) undecided |= std::uint32_t{1} << i;
  }
  return undecided;
}

Status Sampler::decide_from_all(const ScoreRow& row, std::size_t index, std::span<float> logits,
                                Collective& group, TimePoint deadline) {
  // What controls changed matters only for the drawn token's log-probability.
  const bool needs_raw = row.params->controls != nullptr && num_logprobs(row) >= 0;
  const auto whole = [&] { return vocab_.size() == 1 ? logits : std::span(whole_); };
  if (group.size() > 1) RETURN_IF_ERROR(group.gather(logits, whole_, deadline));
  if (tp_rank_ == 0) joint_[index].decide_from(row, whole());
  if (!needs_raw) return {};
  undo(raws_[index], share(), logits);
  if (group.size() > 1) RETURN_IF_ERROR(group.gather(logits, whole_, deadline));
  if (tp_rank_ == 0) joint_[index].set_raw(whole());
  return {};
}

/// Tells the ranks what was drawn where that changes what is drawn next.
Status Sampler::push_drawn(std::span<const ScoreRow> rows, std::span<const ScoredToken> scored,
                           Collective& group, TimePoint deadline) {
  std::array<std::int32_t, kMaxRows> tokens{};
  std::size_t count = 0;
  const auto each = [&](auto&& visit) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].sample) continue;
      LogitControls* controls = controls_of(rows[i]);
      if (controls != nullptr && controls->needs_output()) visit(i, *controls);
    }
  };
  each([&](std::size_t i, LogitControls&) {
    if (tp_rank_ == 0) tokens[count] = scored[i].token;
    ++count;
  });
  if (count == 0) return {};
  if (group.size() > 1) {
    RETURN_IF_ERROR(
        group.broadcast(std::as_writable_bytes(std::span(tokens).first(count)), deadline));
  }
  count = 0;
  each([&](std::size_t, LogitControls& controls) { controls.push(tokens[count++]); });
  return {};
}

}  // namespace brigade::worker
