// SPDX-License-Identifier: Apache-2.0
#include "router/core/planted_bug.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>

#include "common/base/check.h"
#include "common/base/log.h"
#include "tests/router/core/support/scenario.h"

namespace brigade::router::testing {
namespace {

constexpr std::uint64_t kMaxSeeds = 2000;
constexpr unsigned kMaxSeconds = 100;

/// Runs seeds until what must hold does not, which ends the process. Tells each seed in `progress`.
[[noreturn]] void run_seeds(PlantedBug bug, std::uint64_t count, int progress) {
  for (const int number : {SIGABRT, SIGSEGV})
    std::signal(number, SIG_DFL);  // not doctest's handlers
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDERR_FILENO);
  alarm(kMaxSeconds);
  planted_bug = bug;
  try {
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
      INVARIANT_EQ(write(progress, &seed, sizeof seed), static_cast<ssize_t>(sizeof seed));
      Scenario scenario(seed);
      scenario.run();
      if (seed % 5 != 0) continue;
      Scenario later(seed, std::chrono::hours(2));
      later.run();
      INVARIANT_EQ(scenario.world().trace_hash(), later.world().trace_hash());
    }
  } catch (const std::exception&) {
    std::abort();
  }
  _exit(0);
}

struct Outcome {
  std::uint64_t seed = 0;  ///< the last one
  int status = 0;          ///< as of waitpid
};

Outcome run_in_child(PlantedBug bug, std::uint64_t count) {
  int ends[2];
  REQUIRE_EQ(pipe(ends), 0);
  const pid_t child = fork();
  REQUIRE_GE(child, 0);
  if (child == 0) run_seeds(bug, count, ends[1]);
  close(ends[1]);
  Outcome outcome;
  std::uint64_t seed = 0;
  while (read(ends[0], &seed, sizeof seed) == static_cast<ssize_t>(sizeof seed))
    outcome.seed = seed;
  close(ends[0]);
  REQUIRE_EQ(waitpid(child, &outcome.status, 0), child);
  return outcome;
}

}  // namespace

TEST_CASE("without a planted bug the seeds pass in the build that can have one") {
  init_log("bugs", LogLevel::kError);
  CHECK_EQ(run_in_child(PlantedBug::kNone, 10).status, 0);
}

TEST_CASE("the simulation finds each planted bug") {
  for (int bug = 1; bug < static_cast<int>(PlantedBug::kEnd); ++bug) {
    CAPTURE(bug);
    const Outcome outcome = run_in_child(static_cast<PlantedBug>(bug), kMaxSeeds);
    MESSAGE("bug ", bug, ": seed ", outcome.seed);
    CHECK(WIFSIGNALED(outcome.status));
    CHECK_EQ(WTERMSIG(outcome.status), SIGABRT);
  }
}

}  // namespace brigade::router::testing
