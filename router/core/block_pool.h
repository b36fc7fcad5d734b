// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "router/core/id_set.h"
#include "router/core/types.h"

namespace brigade::router {

/// The KV blocks of one replica (the same number on each of its ranks). Each is in one of three
/// states:
///
///     free --allocate--> owned by a request --retire(step)--> in flight --step_ended--> free
///                              '----------------free (no step in flight)----------------^
///
/// A retired block may still be touched by steps up to and including the one it was retired with,
/// so it is free only when that step has ended on all stages.
class BlockPool final {
 public:
  explicit BlockPool(std::uint64_t num_blocks);

  /// Appends `count` blocks for `owner` to `blocks`, lowest ids first. False, and nothing taken,
  /// when fewer are free.
  [[nodiscard]] bool allocate(RequestId owner, std::uint64_t count,
                              std::vector<std::uint32_t>& blocks);
  /// Gives back blocks of `owner` that no step in flight can touch, and clears the list.
  void free(RequestId owner, std::vector<std::uint32_t>& blocks);
  /// Gives back blocks of `owner` once `step` has ended, and clears the list.
  void retire(RequestId owner, std::vector<std::uint32_t>& blocks, std::uint64_t step);
  void step_ended(std::uint64_t step);

  [[nodiscard]] std::uint64_t num_blocks() const { return owner_.size(); }
  [[nodiscard]] std::uint64_t num_free() const { return free_.count(); }
  [[nodiscard]] std::uint64_t num_in_flight() const { return num_in_flight_; }
  [[nodiscard]] std::uint64_t num_owned() const {
    return num_blocks() - num_free() - num_in_flight();
  }
  [[nodiscard]] bool is_owned_by(std::uint32_t block, RequestId owner) const;

  /// Every block in exactly one state (in pools of a few thousand), counts that add up.
  void audit() const;

 private:
  enum class State : std::uint8_t { kFree, kOwned, kInFlight };
  void check_owned(RequestId owner, std::uint32_t block) const;

  IdSet free_;
  std::vector<State> state_;      ///< [num_blocks]
  std::vector<RequestId> owner_;  ///< [num_blocks] of owned blocks
  std::uint64_t num_in_flight_ = 0;
  std::map<std::uint64_t, std::vector<std::uint32_t>> retired_;  ///< by step
};

}  // namespace brigade::router
