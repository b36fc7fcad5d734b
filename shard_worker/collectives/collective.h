// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/status.h"
#include "common/base/time.h"

namespace brigade::worker {

/// What the ranks of one TP group do together. Every call has a deadline and ends early with
/// kCancelled after abort(); a call that expired or was aborted poisons the group: every later call
/// fails at once, and the group is rebuilt under a new epoch, never reused. All ranks make the same
/// calls in the same order. One thread a rank, but abort().
class Collective {
 public:
  virtual ~Collective() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// data[i] = sum over ranks, added in rank order 0, 1, ... so that every rank has the same bits.
  virtual Status all_reduce(std::span<float> data, TimePoint deadline) = 0;

  /// Rank 0 gets the parts of all ranks one after another in rank order (`all` has their total
  /// size; other ranks pass an empty span). Parts may differ in size.
  virtual Status gather(std::span<const float> part, std::span<float> all, TimePoint deadline) = 0;

  /// Rank 0's bytes arrive in everyone's `data` (the same size everywhere).
  virtual Status broadcast(std::span<std::byte> data, TimePoint deadline) = 0;

  /// All ranks agree on `value` (the plan hash of a step), else kDataLoss everywhere.
  virtual Status agree(std::uint64_t value, TimePoint deadline) = 0;

  /// From any thread: ends waits of this rank and of its peers.
  virtual void abort() noexcept = 0;
};

}  // namespace brigade::worker
