// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "shard_worker/collectives/collective.h"

namespace brigade::test {

/// A group of `size` ranks, each used by a thread of this process: a barrier around plain loops,
/// summing in rank order. For tests of what runs over a Collective.
[[nodiscard]] std::vector<std::unique_ptr<worker::Collective>> make_thread_group(int size);

}  // namespace brigade::test
