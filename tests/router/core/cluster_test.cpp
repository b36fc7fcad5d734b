// SPDX-License-Identifier: Apache-2.0
#include "router/core/cluster.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "common/base/strings.h"
#include "tests/router/core/support/fake_model.h"

namespace brigade::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A cluster whose workers say what the test makes them say.
struct Fixture {
  explicit Fixture(RouterConfig router_config = {},
                   Cluster::Models served = {testing::make_fake_model()})
      : config(std::move(router_config)), models(std::move(served)), cluster(config, models) {}

  void hello(WorkerId id, const std::string& host = "h", const std::string& device = "cpu",
             std::uint64_t memory = 1000) {
    cluster.on_hello(id,
                     {.build_id = "b",
                      .schema_hash = "s",
                      .name = str_cat("w", id),
                      .incarnation = 500 + id,
                      .host_id = host,
                      .device = device,
                      .memory_bytes = memory,
                      .endpoints = {str_cat("ipc://", id)}},
                     now);
    cluster.form(now);
  }
  template <typename Message>
  std::map<WorkerId, Message> sent() {
    for (SendToWorker& send : cluster.take_sends())
      sends.push_back(std::move(send));
    std::map<WorkerId, Message> found;
    for (const SendToWorker& send : sends) {
      if (const auto* message = std::get_if<Message>(&send.message)) found[send.worker] = *message;
    }
    return found;
  }
  void load(WorkerId id, std::uint64_t max_kv_blocks = 100) {
    cluster.on_loaded(
        id, {.epoch = sent<wire::Assign>().at(id).epoch, .max_kv_blocks = max_kv_blocks}, now);
  }
  void make_ready(WorkerId id) {
    cluster.on_ready(id, {.epoch = sent<wire::Assign>().at(id).epoch}, now);
  }
  void bring_up(std::initializer_list<WorkerId> ids) {
    for (const WorkerId id : ids)
      load(id);
    for (const WorkerId id : ids)
      make_ready(id);
  }

  RouterConfig config;
  Cluster::Models models;
  Cluster cluster;
  TimePoint now{seconds(100)};
  std::vector<SendToWorker> sends;
};

RouterConfig grid(std::uint32_t tp_size, std::uint32_t pp_size) {
  RouterConfig config;
  config.tp_size = tp_size;
  config.pp_size = pp_size;
  return config;
}

}  // namespace

TEST_CASE("a replica forms when enough workers are here, and each learns its place and its peers") {
  Fixture f(grid(2, 2));
  for (WorkerId id = 1; id <= 3; ++id)
    f.hello(id);
  CHECK(f.sent<wire::Assign>().empty());
  f.hello(4);
  const auto assigns = f.sent<wire::Assign>();
  REQUIRE_EQ(assigns.size(), 4);
  std::set<std::pair<std::uint32_t, std::uint32_t>> places;
  for (const auto& [id, assign] : assigns) {
    places.emplace(assign.pp_stage, assign.tp_rank);
    REQUIRE_EQ(assign.stages.size(), 2);
    CHECK_EQ(assign.stages[0].layers.end, assign.stages[1].layers.begin);
    CHECK_EQ(assign.stages[assign.pp_stage].endpoints[assign.tp_rank][0], str_cat("ipc://", id));
    CHECK_EQ(assign.epoch, 1);
  }
  CHECK_EQ(places.size(), 4);
  CHECK_EQ(assigns.at(1).group_name, assigns.at(2).group_name);
  CHECK_NE(assigns.at(1).group_name, assigns.at(3).group_name);
}

TEST_CASE("the TP ranks of a stage share a host, and stages may span hosts") {
  Fixture f(grid(2, 2));
  f.hello(1, "a");
  f.hello(2, "b");
  f.hello(3, "c");
  f.hello(4, "a");
  f.hello(5, "d");
  CHECK(f.sent<wire::Assign>().empty());
  f.hello(6, "c");
  const auto assigns = f.sent<wire::Assign>();
  REQUIRE_EQ(assigns.size(), 4);
  CHECK_EQ(assigns.at(1).pp_stage, assigns.at(4).pp_stage);
  CHECK_EQ(assigns.at(3).pp_stage, assigns.at(6).pp_stage);
  CHECK_EQ(f.cluster.num_idle(), 2);
}

TEST_CASE("devices do not mix in a replica, and the workers with most memory go first") {
  Fixture f(grid(1, 2));
  f.hello(1, "h", "cpu", 10);
  f.hello(2, "h", "sim", 10);
  CHECK(f.sent<wire::Assign>().empty());
  f.config.max_replicas = 1;
  f.hello(3, "h", "cpu", 30);
  const auto assigns = f.sent<wire::Assign>();
  REQUIRE_EQ(assigns.size(), 2);
  CHECK_EQ(assigns.at(3).pp_stage, 0);
  CHECK_EQ(assigns.at(1).pp_stage, 1);
}

TEST_CASE("max_replicas leaves further workers standing by") {
  RouterConfig config = grid(1, 1);
  config.max_replicas = 2;
  Fixture f(config);
  for (WorkerId id = 1; id <= 3; ++id)
    f.hello(id);
  CHECK_EQ(f.sent<wire::Assign>().size(), 2);
  CHECK_EQ(f.cluster.num_idle(), 1);
  f.cluster.on_worker_lost(1, "gone", f.now);
  f.cluster.form(f.now);
  // One that never came up makes the next try wait.
  CHECK_EQ(f.sent<wire::Assign>().size(), 2);
  f.cluster.form(f.now + seconds(1));
  CHECK_EQ(f.sent<wire::Assign>().size(), 3);
}

TEST_CASE("a worker of another protocol or schema is refused with both values") {
  RouterConfig config;
  config.schema_hash = "mine";
  Fixture f(config);
  f.cluster.on_hello(1, {.schema_hash = "theirs"}, f.now);
  f.cluster.on_hello(2, {.protocol_version = 99, .schema_hash = "mine"}, f.now);
  f.cluster.on_hello(3, {.schema_hash = "mine"}, f.now);
  const auto releases = f.sent<wire::Release>();
  REQUIRE_EQ(releases.size(), 2);
  CHECK_NE(releases.at(1).reason.find("\"theirs\", wanted is \"mine\""), std::string::npos);
  CHECK_NE(releases.at(2).reason.find("protocol version 99, the router has 1"), std::string::npos);
  CHECK_EQ(f.cluster.num_idle(), 1);
}

TEST_CASE("a process that connects anew takes the place of its old connection") {
  Fixture f(grid(1, 2));
  f.cluster.on_hello(1, {.incarnation = 42}, f.now);
  f.cluster.on_hello(2, {.incarnation = 42}, f.now);
  CHECK(f.cluster.find_worker(1) == nullptr);
  CHECK_EQ(f.cluster.num_idle(), 1);
}

TEST_CASE("the smallest rank bounds the KV blocks, and the configuration caps them") {
  Fixture f(grid(1, 2));
  f.hello(1);
  f.hello(2);
  f.load(1, 300);
  CHECK(f.sent<wire::Start>().empty());
  f.load(2, 200);
  CHECK_EQ(f.sent<wire::Start>().at(1).num_kv_blocks, 200);
  RouterConfig config = grid(1, 1);
  config.max_kv_blocks = 50;
  Fixture capped(config);
  capped.hello(1);
  capped.load(1, 300);
  CHECK_EQ(capped.sent<wire::Start>().at(1).num_kv_blocks, 50);
  RouterConfig few = grid(1, 1);
  few.max_seqs = 2;  // of 512 tokens: 32 blocks each
  Fixture huge(few);
  huge.hello(1);
  huge.load(1, std::uint64_t{1} << 40);
  CHECK_EQ(huge.sent<wire::Start>().at(1).num_kv_blocks, 64);
}

TEST_CASE("a replica without room for one sequence is not started, and says why") {
  Fixture f;
  f.hello(1);
  f.load(1, 1);
  CHECK(f.sent<wire::Start>().empty());
  CHECK_NE(f.sent<wire::Abort>().at(1).reason.find("KV cache of 1 blocks"), std::string::npos);
  CHECK_EQ(f.cluster.find_replica(0)->state, ReplicaState::kLost);
}

TEST_CASE("a replica is ready when all its ranks are") {
  Fixture f(grid(1, 2));
  f.hello(1);
  f.hello(2);
  f.load(1);
  f.load(2);
  f.make_ready(1);
  CHECK(f.cluster.take_events().empty());
  f.make_ready(2);
  const auto events = f.cluster.take_events();
  REQUIRE_EQ(events.size(), 1);
  CHECK(events[0].kind == ClusterEvent::Kind::kReady);
  CHECK(f.cluster.has_ready_replica());
}

TEST_CASE("the status tells how much of the last window a rank computed, and how much it waited") {
  Fixture f;
  f.hello(1);
  f.bring_up({1});
  const auto rank = [&] { return f.cluster.status().front().ranks.front(); };
  f.now += milliseconds(1500);
  f.cluster.on_busy(1, {.compute_us = 1}, f.now);  // begins a window
  f.cluster.on_busy(1, {.compute_us = 600'000, .wait_us = 200'000}, f.now + milliseconds(500));
  CHECK(rank().bubble_fraction == 0);
  f.cluster.on_busy(1, {.compute_us = 900'000, .wait_us = 300'000}, f.now + seconds(2));
  CHECK(rank().busy_fraction == doctest::Approx(0.75));
  CHECK(rank().bubble_fraction == doctest::Approx(0.25));
  CHECK(rank().times.compute_us == 1'500'001);
  f.cluster.on_busy(1, {}, f.now + seconds(3));  // nothing to do in this one
  CHECK(rank().busy_fraction == 0);
  CHECK(rank().bubble_fraction == 0);
}

TEST_CASE("a lost rank takes its replica down, and the others form a new one under a new epoch") {
  Fixture f(grid(1, 2));
  for (WorkerId id = 1; id <= 3; ++id)
    f.hello(id);
  f.bring_up({1, 2});
  (void)f.cluster.take_events();
  f.cluster.on_worker_lost(1, "its process ended", f.now);
  const auto events = f.cluster.take_events();
  REQUIRE_EQ(events.size(), 1);
  CHECK(events[0].kind == ClusterEvent::Kind::kDown);
  CHECK_NE(events[0].reason.find("w1"), std::string::npos);
  CHECK_EQ(f.sent<wire::Abort>().at(2).epoch, 1);
  CHECK(f.cluster.can_serve(0));
  f.cluster.on_heartbeat(2, {.epoch = 1}, f.now);  // was under way before the abort
  f.cluster.form(f.now);
  CHECK_EQ(f.sent<wire::Assign>().at(2).epoch, 1);
  f.cluster.on_heartbeat(2, {.epoch = 0}, f.now);
  f.cluster.form(f.now);
  CHECK_EQ(f.sent<wire::Assign>().at(2).epoch, 2);
  CHECK_EQ(f.sent<wire::Assign>().at(3).epoch, 2);
  f.cluster.audit();
}

TEST_CASE("messages of an epoch that is over change nothing") {
  Fixture f(grid(1, 2));
  for (WorkerId id = 1; id <= 3; ++id)
    f.hello(id);
  f.bring_up({1, 2});
  f.cluster.on_worker_lost(1, "x", f.now);
  f.cluster.on_heartbeat(2, {.epoch = 0}, f.now);
  f.cluster.form(f.now);
  (void)f.cluster.take_events();
  f.cluster.on_failed(2, {.epoch = 1, .status = unavailable("late")}, f.now);
  f.cluster.on_loaded(2, {.epoch = 1, .max_kv_blocks = 5}, f.now);
  f.cluster.on_ready(2, {.epoch = 1}, f.now);
  CHECK(f.cluster.take_events().empty());
  CHECK_EQ(f.cluster.find_replica(0)->state, ReplicaState::kLoading);
  f.load(2);
  f.load(3);
  CHECK_EQ(f.sent<wire::Start>().at(3).num_kv_blocks, 100);
}

TEST_CASE("a failing load is tried again after 1, 2, 4 s, and then counts as hopeless") {
  Fixture f;
  f.hello(1);
  for (const int wait : {1, 2, 4}) {
    CHECK(f.cluster.can_serve(0));
    const std::uint64_t epoch = f.sent<wire::Assign>().at(1).epoch;
    f.cluster.on_failed(1, {.epoch = epoch, .status = not_found("no such file")}, f.now);
    f.cluster.form(f.now + seconds(wait) - milliseconds(1));
    CHECK_EQ(f.sent<wire::Assign>().at(1).epoch, epoch);
    CHECK(f.cluster.next_wake() <= f.now + seconds(wait));
    if (wait == 4) CHECK_FALSE(f.cluster.can_serve(0));
    f.now += seconds(wait);
    (void)f.cluster.on_heard(1, f.now);
    f.cluster.form(f.now);
    CHECK_EQ(f.sent<wire::Assign>().at(1).epoch, epoch + 1);
  }
  CHECK_NE(f.cluster.why_not(0).find("no such file"), std::string::npos);
  // It loads once more, so there is hope; a step that succeeds forgets the failures.
  CHECK(f.cluster.can_serve(0));
  f.bring_up({1});
  f.cluster.note_success(0);
  CHECK_NE(f.cluster.why_not(0).find("stand by"), std::string::npos);
}

TEST_CASE("a silent rank takes its replica down; who does not answer the abort is lost") {
  RouterConfig config = grid(1, 2);
  config.heartbeat_timeout = seconds(10);
  config.load_timeout = seconds(60);
  Fixture f(config);
  f.hello(1);
  f.hello(2);
  CHECK(f.cluster.next_wake() == f.now + seconds(60));  // loading takes its time
  f.bring_up({1, 2});
  f.cluster.on_heartbeat(1, {.epoch = 1}, f.now);
  CHECK_EQ(f.sent<wire::HeartbeatAck>().at(1).epoch, 1);
  CHECK_EQ(f.sent<wire::HeartbeatAck>().at(1).interval_ms, 2500);
  CHECK(f.cluster.next_wake() == f.now + seconds(10));
  f.now += seconds(10);
  f.cluster.advance(f.now);
  CHECK_EQ(f.cluster.find_replica(0)->state, ReplicaState::kLost);
  CHECK_EQ(f.sent<wire::Abort>().size(), 2);
  CHECK_EQ(f.cluster.num_idle(), 0);
  // Both were silent: the one that only waited for the other answers.
  CHECK(f.cluster.on_heard(1, f.now + seconds(1)));
  f.cluster.on_heartbeat(1, {.epoch = 0}, f.now + seconds(1));
  CHECK_EQ(f.cluster.num_idle(), 1);
  f.now += seconds(10);
  f.cluster.advance(f.now);
  CHECK(f.cluster.find_worker(1) != nullptr);
  CHECK(f.cluster.find_worker(2) == nullptr);
  CHECK_NE(f.sent<wire::Release>().at(2).reason.find("silent for 10 s"), std::string::npos);
  CHECK_FALSE(f.cluster.on_heard(2, f.now));
}

TEST_CASE("a rank inside a step may be silent for as long as the step may take") {
  RouterConfig config = grid(1, 2);
  config.heartbeat_timeout = seconds(10);
  config.step_timeout = seconds(60);
  Fixture f(config);
  f.hello(1);
  f.hello(2);
  f.bring_up({1, 2});
  f.cluster.set_working(0, /*working=*/true, f.now);
  f.cluster.advance(f.now + seconds(59));
  CHECK_EQ(f.cluster.find_replica(0)->state, ReplicaState::kReady);
  // The step ended: both were alive then, and are to beat again.
  f.cluster.set_working(0, /*working=*/false, f.now + seconds(59));
  f.cluster.advance(f.now + seconds(68));
  CHECK_EQ(f.cluster.find_replica(0)->state, ReplicaState::kReady);
  f.cluster.advance(f.now + seconds(69));
  CHECK_EQ(f.cluster.find_replica(0)->state, ReplicaState::kLost);
}

TEST_CASE("a load without progress is given up, one with progress is not") {
  RouterConfig config;
  config.load_timeout = seconds(60);
  Fixture f(config);
  f.hello(1);
  f.cluster.on_load_progress(1, {.epoch = 1, .fraction = 0.5F}, f.now + seconds(50));
  (void)f.cluster.on_heard(1, f.now + seconds(50));
  f.cluster.advance(f.now + seconds(100));
  CHECK_EQ(f.cluster.find_replica(0)->state, ReplicaState::kLoading);
  (void)f.cluster.on_heard(1, f.now + seconds(109));
  f.cluster.advance(f.now + seconds(110));
  CHECK_EQ(f.cluster.find_replica(0)->state, ReplicaState::kLost);
  f.cluster.on_heartbeat(1, {.epoch = 0}, f.now + seconds(110));
  CHECK_EQ(f.cluster.num_idle(), 1);
}

TEST_CASE("a drained replica is gone when its workers have left") {
  Fixture f(grid(1, 2));
  f.hello(1);
  f.hello(2);
  f.bring_up({1, 2});
  CHECK(f.cluster.drain(7).code() == StatusCode::kNotFound);
  REQUIRE(f.cluster.drain(0).ok());
  CHECK(f.cluster.drain(0).ok());
  CHECK_EQ(f.cluster.status()[0].state, "draining");
  CHECK_FALSE(f.cluster.can_serve(0));
  f.cluster.release(0, "done");
  CHECK_EQ(f.sent<wire::Release>().size(), 2);
  CHECK(f.cluster.drain(0).code() == StatusCode::kFailedPrecondition);
  f.cluster.on_worker_lost(1, "left", f.now);
  CHECK_EQ(f.cluster.status()[0].state, "drained");
  f.cluster.on_worker_lost(2, "left", f.now);
  CHECK(f.cluster.status().empty());
}

TEST_CASE("workers of a replica that drains leave even when it goes down meanwhile") {
  Fixture f(grid(1, 2));
  f.hello(1);
  f.hello(2);
  f.bring_up({1, 2});
  REQUIRE(f.cluster.drain(0).ok());
  f.cluster.on_worker_lost(1, "x", f.now);
  CHECK(f.sent<wire::Release>().contains(2));
  CHECK_EQ(f.cluster.num_idle(), 0);
}

TEST_CASE("with several models the one with fewest replicas is next") {
  Fixture f({}, {testing::make_fake_model("one"), testing::make_fake_model("two")});
  for (WorkerId id = 1; id <= 4; ++id)
    f.hello(id);
  const auto assigns = f.sent<wire::Assign>();
  CHECK_EQ(assigns.at(1).model_name, "one");
  CHECK_EQ(assigns.at(2).model_name, "two");
  CHECK_EQ(assigns.at(3).model_name, "one");
  CHECK_EQ(assigns.at(4).model_name, "two");
}

TEST_CASE("a grid that the model does not allow forms nothing and says what would fit") {
  Fixture f(grid(3, 1));
  for (WorkerId id = 1; id <= 3; ++id)
    f.hello(id);
  CHECK(f.sent<wire::Assign>().empty());
  CHECK_FALSE(f.cluster.can_serve(0));
  CHECK_NE(f.cluster.why_not(0).find("tp 3 does not fit fake"), std::string::npos);
}

}  // namespace brigade::router
