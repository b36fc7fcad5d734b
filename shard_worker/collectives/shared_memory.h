// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/status.h"
#include "common/base/time.h"
#include "shard_worker/collectives/collective.h"

namespace brigade::worker {

struct SharedMemoryOptions {
  /// Unique for the epoch, equal on all ranks; letters, digits, '-', '_', '.'.
  std::string group_name;
  std::uint64_t epoch = 0;
  int rank = 0;
  int size = 2;
  /// Spin about 50 us before sleeping: only where each rank has a core to itself. Two ranks on one
  /// core lose twenty times what they win by it.
  bool spin = false;
  std::size_t slot_bytes =
      std::size_t{128} << 10;  ///< larger data goes in pieces; a multiple of 64, equal on all ranks
};

/// The group of the ranks of one host, over one shared-memory object that every rank opens by name
/// and that loses its name as soon as all have attached. Waits for the other ranks until `deadline`
/// (kDeadlineExceeded names those that did not come) or `stop` (looked at every 50 ms: kCancelled);
/// no name is left behind.
///
/// Each rank has two alternating slots and one sequence counter. A rank publishes call n by writing
/// its slot n mod 2, then its counter; it may do so once all counters have reached n-1, which says
/// that nobody reads call n-2 any more. There is no lock, so a killed rank leaves nothing locked:
/// its peers end at their deadline, or when somebody aborts.
[[nodiscard]] Result<std::unique_ptr<Collective>> attach_shared_memory(
    const SharedMemoryOptions& options, TimePoint deadline, const std::stop_token& stop = {});

}  // namespace brigade::worker
