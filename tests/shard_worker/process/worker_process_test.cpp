// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include "common/base/strings.h"
#include "common/wire/build_info.h"
#include "shard_worker/device/sim/sim_engine.h"
#include "tests/shard_worker/process/scripted_router.h"
#include "tests/shard_worker/process/worker_child.h"

namespace brigade::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace fs = std::filesystem;

std::string unique_name() {
  static int count = 0;
  return str_cat("test-", getpid(), '-', ++count);
}

/// A directory for sockets, gone at the end; a test can see what was left in it.
class RuntimeDir final {
 public:
  RuntimeDir() : path_("/tmp/brigade-" + unique_name()) {
    fs::create_directory(path_);
    fs::permissions(path_, fs::perms::owner_all);
  }
  ~RuntimeDir() { fs::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string router() const { return "ipc://" + path_ + "/router.sock"; }
  [[nodiscard]] int num_worker_sockets() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(path_))
      count += entry.path().filename().string().starts_with("worker-");
    return count;
  }

 private:
  std::string path_;
};

bool shared_memory_left(const std::string& group_name) {
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().find(group_name) != std::string::npos) return true;
  }
  return false;
}

struct Member {
  WorkerChild child;
  std::string peer;
  wire::Hello hello;
};

/// A router's script over a grid of simulated workers, stage by stage, rank by rank.
class SimGrid final {
 public:
  SimGrid(std::uint32_t pp_size, std::uint32_t tp_size)
      : pp_size_(pp_size),
        tp_size_(tp_size),
        router_(std::make_unique<ScriptedRouter>(dir_.router())) {
    for (std::uint32_t i = 0; i < pp_size * tp_size; ++i) {
      WorkerChild child({"--router", dir_.router(), "--device", "sim", "--memory", "64MiB",
                         "--runtime-dir", dir_.path()});
      const wire::Hello hello = router_->expect<wire::Hello>("");
      members_.push_back({std::move(child), router_->last_peer(), hello});
    }
  }

  ScriptedRouter& router() { return *router_; }
  RuntimeDir& dir() { return dir_; }
  Member& member(std::uint32_t stage, std::uint32_t rank) {
    return members_[stage * tp_size_ + rank];
  }
  std::vector<Member>& members() { return members_; }
  [[nodiscard]] const std::string& reporter() const {
    return members_[(pp_size_ - 1) * tp_size_].peer;
  }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] const std::string& group_name() const { return group_name_; }

  void assign_and_start(std::uint32_t timeout_ms = 20000, double base_us = 0) {
    ++epoch_;
    group_name_ = unique_name();
    wire::Assign assign{.epoch = epoch_,
                        .model_name = "sim",
                        .model_path = "none",
                        .max_step_tokens = 64,
                        .max_seqs = 8,
                        .collective_timeout_ms = timeout_ms};
    assign.sim = {.base_us = base_us, .us_per_token = 0, .us_per_context_token = 0, .load_ms = 10};
    for (std::uint32_t stage = 0; stage < pp_size_; ++stage) {
      wire::StageInfo info{.layers = {stage, stage + 1}, .tp_size = tp_size_};
      for (std::uint32_t rank = 0; rank < tp_size_; ++rank) {
        info.endpoints.push_back(member(stage, rank).hello.endpoints);
        info.host_ids.push_back(member(stage, rank).hello.host_id);
        info.link_keys.push_back(member(stage, rank).hello.link_key);
      }
      assign.stages.push_back(info);
    }
    for (std::uint32_t stage = 0; stage < pp_size_; ++stage) {
      for (std::uint32_t rank = 0; rank < tp_size_; ++rank) {
        assign.pp_stage = stage;
        assign.tp_rank = rank;
        assign.group_name = str_cat(group_name_, '-', stage);
        router_->send(member(stage, rank).peer, assign);
      }
    }
    for (Member& member : members_)
      CHECK(router_->expect<wire::Loaded>(member.peer).max_kv_blocks >= 64);
    to_all(wire::Start{.epoch = epoch_, .num_kv_blocks = 64});
    for (Member& member : members_)
      CHECK(router_->expect<wire::Ready>(member.peer).epoch == epoch_);
  }
  void to_all(const wire::ToWorker& message) {
    for (Member& member : members_)
      router_->send(member.peer, message);
  }
  void restart_router() {
    router_.reset();
    router_ = std::make_unique<ScriptedRouter>(dir_.router());
  }

 private:
  RuntimeDir dir_;
  std::uint32_t pp_size_;
  std::uint32_t tp_size_;
  std::uint64_t epoch_ = 40;
  std::string group_name_;
  std::unique_ptr<ScriptedRouter> router_;
  std::vector<Member> members_;
};

wire::StepCommand prefill(std::uint64_t epoch, std::uint64_t step, std::uint32_t seq,
                          std::vector<std::int32_t> prompt) {
  const auto length = static_cast<std::uint32_t>(prompt.size());
  return {.epoch = epoch,
          .step = step,
          .lane = seq,
          .admit = {{.seq = seq}},
          .seq = {seq},
          .position = {0},
          .flags = {wire::kSampleToken},
          .next_token = {-1},
          .cu_tokens = {0, length},
          .tokens = std::move(prompt),
          .cu_blocks = {0, 2},
          .blocks = {seq * 2, seq * 2 + 1}};
}

wire::StepCommand decode(std::uint64_t epoch, std::uint64_t step, std::uint32_t seq,
                         std::uint32_t position) {
  return {.epoch = epoch,
          .step = step,
          .lane = seq,
          .seq = {seq},
          .position = {position},
          .flags = {wire::kTokenFromSample | wire::kSampleToken},
          .next_token = {-1},
          .cu_tokens = {0, 1},
          .tokens = {-1},
          .cu_blocks = {0, 0}};
}

/// Two sequences in two lanes for `num_rounds` rounds, every command sent before a result is read;
/// the results' tokens must be what the simulated device's function gives.
void run_steps(SimGrid& grid, std::uint32_t num_rounds) {
  std::uint64_t step = 0;
  std::vector<wire::StepCommand> commands;
  for (std::uint32_t seq : {0U, 1U}) {
    commands.push_back(
        prefill(grid.epoch(), ++step, seq, {50, 60, static_cast<std::int32_t>(70 + seq)}));
  }
  for (std::uint32_t round = 1; round < num_rounds; ++round) {
    for (std::uint32_t seq : {0U, 1U})
      commands.push_back(decode(grid.epoch(), ++step, seq, 2 + round));
  }
  for (const wire::StepCommand& command : commands)
    grid.to_all(command);
  std::map<std::uint32_t, std::int32_t> previous = {{0, 70}, {1, 71}};
  for (const wire::StepCommand& command : commands) {
    const auto result = grid.router().expect<wire::StepResult>(grid.reporter());
    CHECK(result.step == command.step);
    CHECK(result.plan_hash == wire::plan_hash(command));
    REQUIRE(result.token.size() == 1);
    const std::uint32_t seq = command.seq[0];
    const std::uint32_t position = command.position[0] + command.cu_tokens[1];
    CHECK(result.seq[0] == seq);
    CHECK(result.position[0] == position);
    CHECK(result.sampled[0] == 1);
    CHECK(result.token[0] == sim_token(previous[seq], position));
    previous[seq] = result.token[0];
  }
}

TEST_CASE("a grid of worker processes answers steps whose tokens never pass through the router") {
  for (const auto& [pp_size, tp_size] : {std::pair{1U, 1U}, {1U, 2U}, {2U, 1U}, {2U, 2U}}) {
    CAPTURE(pp_size);
    CAPTURE(tp_size);
    SimGrid grid(pp_size, tp_size);
    CHECK(grid.member(0, 0).hello.schema_hash == wire::schema_hash());
    CHECK(grid.member(0, 0).hello.device == "sim");
    CHECK(grid.member(0, 0).hello.pid == static_cast<std::uint32_t>(grid.member(0, 0).child.pid()));
    grid.assign_and_start();
    run_steps(grid, 12);
    CHECK_FALSE(shared_memory_left(grid.group_name()));
  }
}

TEST_CASE("after an abort the ranks are idle within their deadline, and serve the next epoch") {
  SimGrid grid(2, 2);
  grid.assign_and_start();
  run_steps(grid, 2);
  grid.to_all(wire::Abort{.epoch = grid.epoch(), .reason = "test"});
  for (Member& member : grid.members()) {
    CHECK(grid.router().read_until(
        [&] {
          return grid.router()
                     .last_heartbeat(member.peer)
                     .value_or(wire::Heartbeat{.epoch = 1})
                     .epoch == 0;
        },
        seconds(10)));
  }
  grid.assign_and_start();
  run_steps(grid, 3);
}

TEST_CASE(
    "when one rank is killed, the others fail by their deadline or go idle at an abort at once") {
  for (const auto& [pp_size, tp_size] : {std::pair{1U, 2U}, {2U, 1U}}) {
    for (bool with_abort : {false, true}) {
      CAPTURE(pp_size);
      CAPTURE(with_abort);
      SimGrid grid(pp_size, tp_size);
      grid.assign_and_start(/*timeout_ms=*/with_abort ? 60000 : 500);
      run_steps(grid, 2);
      grid.members()[0].child.signal(SIGKILL);
      CHECK(grid.members()[0].child.wait(seconds(10)) == 128 + SIGKILL);
      const std::string& survivor = grid.members()[1].peer;
      const TimePoint start = Clock::now();
      grid.router().send(survivor, prefill(grid.epoch(), 5, 2, {1, 2}));
      if (with_abort) {
        std::this_thread::sleep_for(milliseconds(100));
        grid.router().send(survivor, wire::Abort{.epoch = grid.epoch()});
        CHECK(grid.router().read_until(
            [&] {
              return grid.router()
                         .last_heartbeat(survivor)
                         .value_or(wire::Heartbeat{.epoch = 1})
                         .epoch == 0;
            },
            seconds(10)));
      } else {
        const auto failed = grid.router().expect<wire::Failed>(survivor, seconds(10));
        CHECK(failed.epoch == grid.epoch());
        CHECK(failed.status.code() == StatusCode::kDeadlineExceeded);
      }
      CHECK(Clock::now() - start < seconds(10));
    }
  }
}

TEST_CASE(
    "a command that breaks a rule, or that the ranks got differently, fails the epoch with its "
    "reason") {
  SimGrid grid(1, 2);
  grid.assign_and_start();
  grid.to_all(decode(grid.epoch(), 1, 3, 9));
  for (Member& member : grid.members()) {
    const auto failed = grid.router().expect<wire::Failed>(member.peer);
    CHECK(failed.status.message().find("sequence 3") != std::string::npos);
  }
  grid.assign_and_start();
  grid.router().send(grid.member(0, 0).peer, prefill(grid.epoch(), 1, 0, {1, 2}));
  grid.router().send(grid.member(0, 1).peer, prefill(grid.epoch(), 1, 0, {1, 3}));
  for (Member& member : grid.members()) {
    CHECK(grid.router().expect<wire::Failed>(member.peer).status.code() == StatusCode::kDataLoss);
  }
  grid.assign_and_start();
  run_steps(grid, 2);
}

TEST_CASE("garbage from the router costs the connection, garbage on the stage link nothing") {
  SimGrid grid(2, 1);
  grid.assign_and_start();
  net::Context context;
  auto stranger = net::Socket::dealer(context, {.max_frames = 2, .routing_id = "stranger"});
  REQUIRE(stranger.ok());
  REQUIRE(stranger->connect(grid.member(1, 0).hello.endpoints[1]).ok());
  for (int i = 0; i < 20; ++i) {
    std::vector<net::Frame> frames;
    frames.emplace_back(std::string(static_cast<std::size_t>(i * 7), static_cast<char>(i * 13)));
    CHECK(stranger->send_until(std::move(frames), Clock::now() + seconds(5)).ok());
  }
  run_steps(grid, 3);
  std::vector<net::Frame> frames;
  frames.emplace_back(std::string_view("not a sequence"));
  frames.emplace_back(std::string_view("not a message"));
  Member& member = grid.member(0, 0);
  grid.router().send_raw(member.peer, std::move(frames));
  const auto hello = grid.router().expect<wire::Hello>("");
  CHECK(hello.incarnation == member.hello.incarnation);
  CHECK(grid.router().last_peer() != member.peer);
  member.peer = grid.router().last_peer();
  grid.router().send(grid.member(1, 0).peer, wire::Abort{.epoch = grid.epoch()});
  grid.assign_and_start();
  run_steps(grid, 2);
}

TEST_CASE(
    "workers say hello again to a router that comes back, as the same incarnation, and serve it") {
  SimGrid grid(1, 2);
  grid.assign_and_start();
  run_steps(grid, 2);
  grid.restart_router();
  for (std::size_t i = 0; i < grid.members().size(); ++i) {
    const auto hello = grid.router().expect<wire::Hello>("", seconds(30));
    bool known = false;
    for (Member& member : grid.members()) {
      if (member.hello.incarnation != hello.incarnation) continue;
      member.peer = grid.router().last_peer();
      known = true;
    }
    CHECK(known);
  }
  grid.assign_and_start();
  run_steps(grid, 3);
}

TEST_CASE(
    "a worker leaves with a goodbye and status 0 when released or told to end, and leaves nothing "
    "behind") {
  SimGrid grid(1, 2);
  grid.assign_and_start();
  CHECK(grid.dir().num_worker_sockets() == 2);
  grid.router().send(grid.member(0, 0).peer, wire::Release{.reason = "drained"});
  CHECK(grid.router().expect<wire::Goodbye>(grid.member(0, 0).peer).reason == "drained");
  CHECK(grid.member(0, 0).child.wait(seconds(10)) == 0);
  grid.member(0, 1).child.signal(SIGTERM);
  CHECK_FALSE(grid.router().expect<wire::Goodbye>(grid.member(0, 1).peer).reason.empty());
  CHECK(grid.member(0, 1).child.wait(seconds(10)) == 0);
  CHECK(grid.dir().num_worker_sockets() == 0);
  CHECK_FALSE(shared_memory_left(grid.group_name()));
}

TEST_CASE(
    "a worker ends when the process that started it dies, and when no router comes for too long") {
  RuntimeDir dir;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int pipe_fds[2];
  REQUIRE(pipe(pipe_fds) == 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t worker = spawn_worker({"--router", dir.router(), "--device", "sim", "--runtime-dir",
                                       dir.path(), "--expected-parent", std::to_string(getpid())});
    if (write(pipe_fds[1], &worker, sizeof worker) != sizeof worker) _exit(1);
    pause();
  }
  pid_t worker = 0;
  REQUIRE(read(pipe_fds[0], &worker, sizeof worker) == sizeof worker);
  CHECK_FALSE(wait_exit(worker, Clock::now() + milliseconds(200)).has_value());
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  CHECK(wait_exit(worker, Clock::now() + seconds(10)) == 0);

  WorkerChild alone({"--router", dir.router(), "--device", "sim", "--runtime-dir", dir.path(),
                     "--give-up-after", "0.2"});
  CHECK(alone.wait(seconds(10)) == 0);
  CHECK(dir.num_worker_sockets() == 0);
}

TEST_CASE("wrong options end with a message and a status") {
  RuntimeDir dir;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"--router", "nowhere"},
           {"--router", "x:1", "--device", "abacus"},
           {"--router", "x:1", "--threads", "0"},
           {"--router", "x:1", "--device", "sim", "--runtime-dir", "/proc/nope"},
           {"--router", "x:1", "--device", "sim", "--runtime-dir", dir.path(), "--bind",
            "0.0.0.0"}}) {
    WorkerChild child(arguments);
    const auto status = child.wait(seconds(10));
    REQUIRE(status.has_value());
    CHECK(*status > 0);
    CHECK(*status < 128);
  }
}

}  // namespace
}  // namespace brigade::worker
