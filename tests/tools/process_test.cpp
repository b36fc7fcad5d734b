// SPDX-License-Identifier: Apache-2.0
#include "tools/process.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace brigade::tools {
namespace {

/// Waits through the pidfd, at most ten seconds.
ProcessEnd wait(Process& process) {
  pollfd fd{.fd = process.pidfd(), .events = POLLIN, .revents = 0};
  REQUIRE(poll(&fd, 1, 10'000) == 1);
  const auto end = process.try_wait();
  REQUIRE(end.has_value());
  return *end;
}

}  // namespace

TEST_CASE("a process tells its exit code") {
  auto process = Process::start({"/bin/sh", "-c", "exit 7"});
  REQUIRE(process.ok());
  const ProcessEnd end = wait(*process);
  CHECK(end.code == 7);
  CHECK(!end.clean());
  CHECK(end.describe() == "exited with code 7");
  CHECK(process->pidfd() == -1);
  CHECK(!process->try_wait().has_value());
}

TEST_CASE("a killed process tells its signal, and signals to one that has ended do nothing") {
  auto process = Process::start({"/bin/sleep", "60"});
  REQUIRE(process.ok());
  CHECK(!process->try_wait().has_value());
  process->signal(SIGKILL);
  const ProcessEnd end = wait(*process);
  CHECK(end.signal == SIGKILL);
  CHECK(end.describe() == "was killed by signal 9 (Killed)");
  process->signal(SIGKILL);
}

TEST_CASE("a process has its own group and default signals, and no input") {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  REQUIRE(sigprocmask(SIG_BLOCK, &blocked, nullptr) == 0);
  auto sleeper = Process::start({"/bin/sleep", "60"});
  auto reader = Process::start({"/bin/cat"});
  REQUIRE(sigprocmask(SIG_UNBLOCK, &blocked, nullptr) == 0);
  REQUIRE(sleeper.ok());
  REQUIRE(reader.ok());
  CHECK(getpgid(sleeper->pid()) == sleeper->pid());
  sleeper->signal(SIGTERM);
  CHECK(wait(*sleeper).signal == SIGTERM);
  CHECK(wait(*reader).clean());
}

TEST_CASE("a process does not outlive its owner") {
  pid_t pid = -1;
  {
    auto process = Process::start({"/bin/sleep", "60"});
    REQUIRE(process.ok());
    pid = process->pid();
    Process moved = std::move(*process);
    CHECK(moved.pid() == pid);
    CHECK(kill(pid, 0) == 0);
  }
  CHECK(kill(pid, 0) != 0);
}

TEST_CASE("a program that is not there is an error that names it") {
  auto process = Process::start({"/nowhere/brigade-router"});
  REQUIRE(!process.ok());
  CHECK(process.status().message().find("/nowhere/brigade-router") != std::string::npos);
  CHECK(sibling_program("no-such-program").status().code() == StatusCode::kNotFound);
}

}  // namespace brigade::tools
