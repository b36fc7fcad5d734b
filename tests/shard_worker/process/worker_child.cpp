// SPDX-License-Identifier: Apache-2.0
#include "tests/shard_worker/process/worker_child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "common/base/check.h"

namespace brigade::worker {

pid_t spawn_worker(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {BRIGADE_WORKER_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  INVARIANT_EQ(posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  return pid;
}

std::optional<int> wait_exit(pid_t pid, TimePoint deadline) {
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (got < 0 || Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

WorkerChild::WorkerChild(WorkerChild&& other) noexcept : pid_(other.pid_), reaped_(other.reaped_) {
  other.reaped_ = true;
}

WorkerChild::~WorkerChild() {
  if (reaped_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void WorkerChild::signal(int number) const {
  kill(pid_, number);
}

std::optional<int> WorkerChild::wait(Duration at_most) {
  if (reaped_) return std::nullopt;
  const std::optional<int> status = wait_exit(pid_, Clock::now() + at_most);
  reaped_ = status.has_value();
  return status;
}

}  // namespace brigade::worker
