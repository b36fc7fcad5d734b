// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/collectives/shared_memory.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "common/base/strings.h"

namespace brigade::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string new_group_name() {
  static std::random_device device;
  return str_cat("test-", getpid(), '-', device());
}

TimePoint after(Duration duration) {
  return Clock::now() + duration;
}

/// What one rank does; true when all was as it should be. Runs in a process of its own, so it
/// cannot use CHECK.
using RankBody = std::function<bool(Collective&)>;

/// Forks a process a rank. wait() gives the exit status of each: 0 as it should be, 1 not, 2 not
/// attached.
class RankProcesses final {
 public:
  RankProcesses(SharedMemoryOptions options, const std::vector<RankBody>& bodies)
      : name_(options.group_name) {
    options.size = static_cast<int>(bodies.size());
    for (std::size_t r = 0; r < bodies.size(); ++r) {
      options.rank = static_cast<int>(r);
      const pid_t pid = fork();
      if (pid == 0) {
        auto group = attach_shared_memory(options, after(seconds(10)));
        _exit(!group.ok() ? 2 : bodies[r](**group) ? 0 : 1);
      }
      pids_.push_back(pid);
    }
  }
  ~RankProcesses() {
    for (std::size_t r = 0; r < pids_.size(); ++r) {
      kill_rank(r);
      wait(r);
    }
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void kill_rank(std::size_t r) {
    if (pids_[r] > 0) kill(pids_[r], SIGKILL);
  }
  int wait(std::size_t r) {
    if (pids_[r] <= 0) return -1;
    int status = 0;
    waitpid(pids_[r], &status, 0);
    pids_[r] = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] bool name_is_gone() const {
    return !std::filesystem::exists("/dev/shm/brigade-" + name_);
  }

 private:
  std::string name_;
  std::vector<pid_t> pids_;
};

SharedMemoryOptions small_slots() {
  // Small pieces, so that mid-sized data already takes many calls.
  return {.group_name = new_group_name(), .epoch = 3, .slot_bytes = 4096};
}

void run_all(const SharedMemoryOptions& options, int size, const RankBody& body) {
  RankProcesses ranks(options, std::vector<RankBody>(static_cast<std::size_t>(size), body));
  for (int r = 0; r < size; ++r)
    CHECK(ranks.wait(static_cast<std::size_t>(r)) == 0);
  CHECK(ranks.name_is_gone());
}

std::vector<float> random_floats(std::size_t count, std::uint32_t seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(-1000, 1000);
  std::vector<float> data(count);
  for (float& x : data)
    x = uniform(rng) * (rng() % 2 == 0 ? 1.0F : 1e-6F);
  return data;
}

/// What rank r brings to call `call` of `count` floats.
std::vector<float> rank_data(int rank, int call, std::size_t count) {
  return random_floats(count, static_cast<std::uint32_t>(call * 64 + rank));
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr std::size_t kCounts[] = {1, 2, 3, 255, 256, 257, 576, 1023, 1024, 1025, 9000, 262144};

TEST_CASE("the sum has the bits of adding in rank order, for all sizes and TP 2 and 3") {
  for (int size : {2, 3}) {
    for (bool spin : {false, true}) {
      SharedMemoryOptions options = small_slots();
      options.spin = spin;
      run_all(options, size, [size](Collective& group) {
        int call = 0;
        for (int round = 0; round < 5; ++round) {
          for (std::size_t count : kCounts) {
            ++call;
            std::vector<float> expected = rank_data(0, call, count);
            for (int r = 1; r < size; ++r) {
              const std::vector<float> other = rank_data(r, call, count);
              for (std::size_t i = 0; i < count; ++i)
                expected[i] += other[i];
            }
            std::vector<float> data = rank_data(group.rank(), call, count);
            if (!group.all_reduce(data, after(seconds(20))).ok()) return false;
            if (!same_bits(data, expected)) return false;
          }
        }
        return true;
      });
    }
  }
}

TEST_CASE("gather brings uneven and empty parts to rank 0 in rank order") {
  run_all(small_slots(), 3, [](Collective& group) {
    const std::size_t sizes[][3] = {
        {5, 3, 1}, {0, 7, 5000}, {3000, 0, 0}, {0, 0, 0}, {1024, 1025, 2048}};
    int call = 0;
    for (const auto& parts : sizes) {
      ++call;
      std::vector<float> expected;
      for (int r = 0; r < 3; ++r) {
        const std::vector<float> part = rank_data(r, call, parts[r]);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      std::vector<float> all(group.rank() == 0 ? expected.size() : 0);
      const std::vector<float> mine = rank_data(group.rank(), call, parts[group.rank()]);
      if (!group.gather(mine, all, after(seconds(20))).ok()) return false;
      if (group.rank() == 0 && !same_bits(all, expected)) return false;
    }
    return true;
  });
}

TEST_CASE("broadcast, agree, gather and all_reduce follow one another in any order") {
  run_all(small_slots(), 3, [](Collective& group) {
    for (int call = 1; call <= 300; ++call) {
      const std::vector<float> expected = rank_data(0, call, static_cast<std::size_t>(call * 11));
      std::vector<float> data = group.rank() == 0 ? expected : std::vector<float>(expected.size());
      if (!group.broadcast(std::as_writable_bytes(std::span(data)), after(seconds(20))).ok())
        return false;
      if (!same_bits(data, expected)) return false;
      if (call % 3 == 0 && !group.agree(static_cast<std::uint64_t>(call), after(seconds(20))).ok())
        return false;
      if (call % 5 == 0) {
        float one[1] = {1};
        if (!group.all_reduce(one, after(seconds(20))).ok() || one[0] != 3) return false;
      }
      if (call % 7 == 0) {
        const float mine[1] = {static_cast<float>(group.rank())};
        std::vector<float> all(group.rank() == 0 ? 3 : 0);
        if (!group.gather(mine, all, after(seconds(20))).ok()) return false;
        if (group.rank() == 0 && !same_bits(all, {0, 1, 2})) return false;
      }
    }
    return true;
  });
}

TEST_CASE("ranks that disagree all get data loss, and the group is dead from then on") {
  for (int round = 0; round < 20; ++round) {
    run_all(small_slots(), 3, [](Collective& group) {
      if (!group.agree(7, after(seconds(20))).ok()) return false;
      const std::uint64_t value = group.rank() == 2 ? 8 : 7;
      if (group.agree(value, after(seconds(20))).code() != StatusCode::kDataLoss) return false;
      float data[1] = {0};
      return group.all_reduce(data, after(seconds(20))).code() == StatusCode::kDataLoss;
    });
  }
}

TEST_CASE("ranks that make different calls, or the same with different sizes, end with a Status") {
  for (bool other_kind : {false, true}) {
    run_all(small_slots(), 2, [other_kind](Collective& group) {
      std::vector<float> data(group.rank() == 0 ? 10 : 12);
      if (group.rank() == 1 && other_kind) return !group.agree(1, after(seconds(20))).ok();
      return !group.all_reduce(data, after(seconds(20))).ok();
    });
  }
}

TEST_CASE("a rank killed in mid-run leaves the survivor a Status by its deadline") {
  const RankBody survivor = [](Collective& group) {
    for (;;) {
      const TimePoint deadline = after(milliseconds(300));
      float data[100] = {};
      const Status status = group.all_reduce(data, deadline);
      if (status.ok()) continue;
      const bool in_time = Clock::now() < deadline + seconds(5);
      const bool stays = group.agree(1, after(seconds(20))).code() == status.code();
      return in_time && stays && status.code() == StatusCode::kDeadlineExceeded;
    }
  };
  RankProcesses ranks(small_slots(), {survivor, survivor});
  std::this_thread::sleep_for(milliseconds(100));
  ranks.kill_rank(1);
  CHECK(ranks.wait(0) == 0);
  CHECK(ranks.name_is_gone());
}

TEST_CASE("abort from another thread ends this rank's wait and its peer's at once") {
  const RankBody waits = [](Collective& group) {
    std::jthread aborter;
    if (group.rank() == 0) {
      aborter = std::jthread([&group] {
        std::this_thread::sleep_for(milliseconds(50));
        group.abort();
      });
    }
    if (group.rank() == 2) {  // comes long after the abort: the others sit in the call alone
      std::this_thread::sleep_for(seconds(2));
      float late[1] = {0};
      return group.all_reduce(late, after(seconds(60))).code() == StatusCode::kCancelled;
    }
    const TimePoint start = Clock::now();
    float data[4] = {};
    const Status status = group.all_reduce(data, after(seconds(60)));
    return status.code() == StatusCode::kCancelled && Clock::now() - start < seconds(20);
  };
  run_all(small_slots(), 3, waits);
}

TEST_CASE(
    "attaching ends at its deadline when a rank is missing, or at a stop, and leaves no name") {
  SharedMemoryOptions options = small_slots();
  const auto late = attach_shared_memory(options, after(milliseconds(60)));
  CHECK(late.status().code() == StatusCode::kDeadlineExceeded);
  CHECK(late.status().message().find(" 1") != std::string::npos);
  std::stop_source stop;
  stop.request_stop();
  CHECK(attach_shared_memory(options, after(seconds(60)), stop.get_token()).status().code() ==
        StatusCode::kCancelled);
  CHECK_FALSE(std::filesystem::exists("/dev/shm/brigade-" + options.group_name));
}

TEST_CASE("a rank of another epoch or slot size, or a second one of the same rank, is refused") {
  for (int kind : {0, 1, 2}) {
    SharedMemoryOptions first = small_slots();
    SharedMemoryOptions second = first;
    second.rank = 1;
    if (kind == 0) second.epoch = 4;
    if (kind == 1) second.slot_bytes = 8192;
    if (kind == 2) second.rank = 0;
    Result<std::unique_ptr<Collective>> waiting = unavailable("not yet");
    {
      std::jthread thread([&] { waiting = attach_shared_memory(first, after(milliseconds(400))); });
      std::this_thread::sleep_for(milliseconds(100));
      const auto refused = attach_shared_memory(second, after(seconds(5)));
      CHECK_FALSE(refused.ok());
      CHECK(refused.status().code() != StatusCode::kDeadlineExceeded);
    }
    CHECK(waiting.status().code() == StatusCode::kDeadlineExceeded);
  }
}

TEST_CASE("names and sizes that make no group are refused before anything is made") {
  SharedMemoryOptions options = small_slots();
  options.group_name = "../etc/x";
  CHECK(attach_shared_memory(options, after(seconds(1))).status().code() ==
        StatusCode::kInvalidArgument);
  options = small_slots();
  options.rank = 2;
  CHECK(attach_shared_memory(options, after(seconds(1))).status().code() ==
        StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace brigade::worker
