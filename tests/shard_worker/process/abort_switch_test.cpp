// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/process/abort_switch.h"

#include <doctest/doctest.h>

#include "shard_worker/collectives/solo.h"

namespace brigade::worker {
namespace {

TEST_CASE("an abort ends the armed epoch's group and token, and wakes the engine thread") {
  int wakes = 0;
  AbortSwitch abort([&] { ++wakes; });
  const auto group = make_solo_collective();
  abort.arm(5);
  abort.set_group(group.get());
  CHECK_FALSE(abort.token().stop_requested());
  abort.abort(4);
  CHECK_FALSE(abort.token().stop_requested());
  abort.abort(5);
  CHECK(abort.token().stop_requested());
  CHECK(group->agree(1, kNever).code() == StatusCode::kCancelled);
  CHECK(wakes == 2);
  abort.set_group(nullptr);
}

TEST_CASE("an abort that comes before its epoch is armed or its group is known still counts") {
  AbortSwitch abort([] {});
  abort.abort(6);
  abort.arm(5);
  CHECK_FALSE(abort.token().stop_requested());
  abort.arm(6);
  CHECK(abort.token().stop_requested());
  const auto group = make_solo_collective();
  abort.set_group(group.get());
  CHECK(group->agree(1, kNever).code() == StatusCode::kCancelled);
  abort.set_group(nullptr);
  abort.arm(7);
  CHECK_FALSE(abort.token().stop_requested());
}

TEST_CASE("after abort_all every epoch is aborted") {
  AbortSwitch abort([] {});
  abort.arm(5);
  abort.abort_all();
  CHECK(abort.token().stop_requested());
  abort.arm(6);
  CHECK(abort.token().stop_requested());
}

}  // namespace
}  // namespace brigade::worker
