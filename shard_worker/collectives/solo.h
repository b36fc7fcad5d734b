// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shard_worker/collectives/collective.h"

namespace brigade::worker {

/// A group of one rank: nothing to wait for. abort() poisons it like any other group.
[[nodiscard]] std::unique_ptr<Collective> make_solo_collective();

}  // namespace brigade::worker
