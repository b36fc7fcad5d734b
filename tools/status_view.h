// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/partition.h"
#include "common/base/status.h"

namespace brigade::tools {

struct RankView {
  std::string worker;
  std::int64_t pid = 0;
  std::string state;
  std::int64_t tp_rank = 0;
  std::int64_t pp_stage = 0;
  Range layers;
  double load_fraction = 0;    ///< 0..1
  double busy_fraction = 0;    ///< 0..1
  double bubble_fraction = 0;  ///< 0..1
};

struct ReplicaView {
  std::int64_t id = 0;
  std::string model;
  std::string state;
  std::int64_t kv_total = 0;
  std::int64_t kv_used = 0;
  std::int64_t kv_cached = 0;
  std::int64_t running = 0;
  std::vector<RankView> ranks;

  [[nodiscard]] double load_fraction() const;  ///< mean over the ranks
};

/// What GET /status says, as far as the command line shows it.
struct StatusView {
  std::vector<ReplicaView> replicas;
  std::int64_t idle_workers = 0;
  std::int64_t queued_requests = 0;
  std::int64_t queued_tokens = 0;

  [[nodiscard]] std::int64_t num_ready() const;
};

/// kDataLoss when the text is not JSON; members that are missing or of another type count as empty,
/// so that an older command line can read a newer router.
[[nodiscard]] Result<StatusView> parse_status(std::string_view json);

/// The status for people: one line a replica, one a rank, one for the queue.
[[nodiscard]] std::string render_status(const StatusView& status);

/// `loading [#######.......]  52 %  1 of 2 replicas ready`, at most `width` columns.
[[nodiscard]] std::string render_progress(const StatusView& status, std::int64_t num_replicas,
                                          std::size_t width);

}  // namespace brigade::tools
