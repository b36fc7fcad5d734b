// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/process/guardian.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <thread>

#include "common/base/log.h"

namespace brigade::worker {
namespace {

/// Runs `body` in a process of its own and returns its exit status.
template <typename Body>
int in_process(Body body) {
  const pid_t pid = fork();
  if (pid == 0) {
    init_log("guardian test", LogLevel::kError);
    block_stop_signals();
    body();
    _exit(99);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("a stop signal gives the reason once, and the process ends in its own order") {
  CHECK(in_process([] {
          std::promise<std::string> stopped;
          const Guardian guardian(
              {.on_stop = [&](const std::string& why) { stopped.set_value(why); },
               .last_words = [] {}});
          kill(getpid(), SIGTERM);
          _exit(stopped.get_future().get().empty() ? 1 : 0);
        }) == 0);
}

TEST_CASE("an end that hangs is cut short after the grace, or at once by a second signal") {
  for (bool second_signal : {false, true}) {
    CHECK(in_process([second_signal] {
            const Duration grace =
                second_signal ? std::chrono::seconds(60) : std::chrono::milliseconds(50);
            std::promise<void> stopped;
            const Guardian guardian({.grace = grace,
                                     .on_stop = [&](const std::string&) { stopped.set_value(); },
                                     .last_words = [] { _exit(7); }});
            kill(getpid(), SIGINT);
            stopped.get_future().wait();
            if (second_signal) kill(getpid(), SIGTERM);
            std::this_thread::sleep_for(std::chrono::seconds(30));
          }) == 7);
  }
}

TEST_CASE("a process whose expected parent is another one stops") {
  CHECK(in_process([] {
          std::promise<std::string> stopped;
          const Guardian guardian(
              {.expected_parent = getpid(),
               .on_stop = [&](const std::string& why) { stopped.set_value(why); },
               .last_words = [] {}});
          _exit(stopped.get_future().get().find("not this one's parent") == std::string::npos ? 1
                                                                                              : 0);
        }) == 0);
}

TEST_CASE("a guardian that is not needed any more goes without a word") {
  CHECK(in_process([] {
          {
            const Guardian guardian({.expected_parent = getppid(),
                                     .on_stop = [](const std::string&) { _exit(1); },
                                     .last_words = [] { _exit(2); }});
          }
          _exit(0);
        }) == 0);
}

}  // namespace
}  // namespace brigade::worker
