// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Bugs that are put into the core on purpose, one at a time, to prove that the simulation finds
/// them (tests/router/core/planted_bugs_test.cpp). They exist only in a second build of the core,
/// made for that test with BRIGADE_PLANTED_BUGS; elsewhere planted() is constantly false and leaves
/// no code behind.
namespace brigade::router {

enum class PlantedBug : std::uint8_t {
  kNone,
  kDropFinish,          ///< the end of a cancelled request is not told
  kEndTwice,            ///< that of one that stopped is told twice
  kWrongUsage,          ///< counts a token that was never sent
  kCountTwice,          ///< a request that reached its length is counted as two
  kLateDeadline,        ///< ends requests 10 s after their deadline
  kRepeatToken,         ///< computes the last token again after a fail-over
  kSwapOutputs,         ///< gives two requests of a step each other's token
  kIgnoreEpoch,         ///< takes a result of an epoch that is over for a present one
  kLosePreempted,       ///< does not queue a preempted request again
  kDrainEndsRequests,   ///< a drain ends what runs
  kFreeEarly,           ///< blocks are free while a step in flight may touch them
  kLeakBlocks,          ///< keeps the blocks of a request that ends between steps
  kShareAcrossTenants,  ///< one tenant finds another's prefix
  kReadUnfilled,        ///< starts behind a shared prefix that is not computed yet
  kMatchTooFar,         ///< takes the block with the last token from the cache too
  kBudgetOffByOne,      ///< a step of one token too many
  kForgetRelease,       ///< reuses a slot without telling the ranks
  kSkipToken,           ///< leaves out a token between two chunks
  kStarveLongPrompts,   ///< never takes from the bucket of the longest prompts
  kDependOnClock,       ///< plans otherwise when the clock says more than an hour
  kEnd,
};

#ifdef BRIGADE_PLANTED_BUGS
/// The one that is in force.
inline PlantedBug planted_bug = PlantedBug::kNone;
[[nodiscard]] inline bool planted(PlantedBug bug) {
  return bug == planted_bug;
}
#else
[[nodiscard]] constexpr bool planted(PlantedBug /*bug*/) {
  return false;
}
#endif

}  // namespace brigade::router
