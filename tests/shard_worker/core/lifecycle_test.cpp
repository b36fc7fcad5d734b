// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/core/lifecycle.h"

#include <doctest/doctest.h>

#include <string>

namespace brigade::worker {
namespace {

/// The actions as words, so that a test states a whole exchange in one line.
std::string words(Lifecycle& life) {
  static const char* const kMessages[] = {"hello",     "progress", "loaded", "ready", "failed",
                                          "heartbeat", "goodbye",  "result", "times"};
  static const char* const kJobs[] = {"load", "start", "stop"};
  std::string out;
  for (const LifecycleAction& action : life.take_actions()) {
    if (!out.empty()) out += ' ';
    if (const auto* send = std::get_if<SendToRouter>(&action))
      out += kMessages[send->message.index()];
    if (const auto* run = std::get_if<RunJob>(&action)) out += kJobs[run->job.index()];
    if (std::holds_alternative<AbortEpoch>(action)) out += "abort";
    if (std::holds_alternative<LeaveProcess>(action)) out += "leave";
  }
  return out;
}

wire::Assign assign(std::uint64_t epoch) {
  return {.epoch = epoch};
}

void make_ready(Lifecycle& life, std::uint64_t epoch) {
  life.on_message(assign(epoch));
  life.on_engine(LoadDone{.epoch = epoch, .max_kv_blocks = 10});
  life.on_message(wire::Start{.epoch = epoch, .num_kv_blocks = 10});
  life.on_engine(StartDone{epoch});
  (void)life.take_actions();
  REQUIRE(life.state() == WorkerState::kReady);
}

TEST_CASE("a worker loads, starts and is ready") {
  Lifecycle life;
  life.on_message(assign(5));
  CHECK(words(life) == "load");
  life.on_engine(LoadProgressed{.epoch = 5, .fraction = 0.5F});
  CHECK(words(life) == "progress");
  life.on_engine(LoadDone{.epoch = 5, .max_kv_blocks = 10, .weight_bytes = 1});
  CHECK(words(life) == "loaded");
  life.on_message(wire::Start{.epoch = 5, .num_kv_blocks = 10});
  CHECK(words(life) == "start");
  life.on_engine(StartDone{5});
  CHECK(words(life) == "ready");
  CHECK(life.state() == WorkerState::kReady);
  CHECK(life.epoch() == 5);
}

TEST_CASE(
    "abort, failure and loss of the router all lead back to idle, and the next assign is taken") {
  Lifecycle life;
  make_ready(life, 5);
  life.on_message(wire::Abort{.epoch = 5});
  CHECK(words(life) == "abort stop");
  CHECK(life.state() == WorkerState::kIdle);
  make_ready(life, 6);
  life.on_engine(EpochFailed{.epoch = 6, .status = internal_error("x")});
  CHECK(words(life) == "failed abort stop");
  make_ready(life, 7);
  life.on_router_lost();
  CHECK(words(life) == "abort stop");
  make_ready(life, 8);
}

TEST_CASE("a new assign replaces the place before it") {
  Lifecycle life;
  make_ready(life, 5);
  life.on_message(assign(6));
  CHECK(words(life) == "abort stop load");
  CHECK(life.epoch() == 6);
}

TEST_CASE("what belongs to another epoch changes nothing") {
  Lifecycle life;
  make_ready(life, 5);
  life.on_message(wire::Abort{.epoch = 4});
  life.on_engine(EpochFailed{.epoch = 4, .status = internal_error("x")});
  life.on_engine(LoadDone{.epoch = 6});
  CHECK(words(life).empty());
  CHECK(life.state() == WorkerState::kReady);
}

TEST_CASE("a start out of turn or with too many blocks is refused with Failed") {
  Lifecycle life;
  life.on_message(wire::Start{.epoch = 5});
  CHECK(words(life) == "failed");
  life.on_message(assign(5));
  life.on_message(wire::Start{.epoch = 5});
  CHECK(words(life) == "load abort stop failed");
  CHECK(life.state() == WorkerState::kIdle);
  life.on_message(assign(6));
  life.on_engine(LoadDone{.epoch = 6, .max_kv_blocks = 10});
  life.on_message(wire::Start{.epoch = 6, .num_kv_blocks = 11});
  CHECK(words(life) == "load loaded abort stop failed");
  life.on_message(assign(0));
  CHECK(words(life) == "failed");
}

TEST_CASE("release and a stop of the process say goodbye once, and nothing is heard after") {
  Lifecycle life;
  make_ready(life, 5);
  life.on_message(wire::Release{.reason = "drained"});
  CHECK(words(life) == "abort stop goodbye leave");
  life.on_stop("SIGTERM");
  life.on_message(assign(6));
  CHECK(words(life).empty());
}

}  // namespace
}  // namespace brigade::worker
