// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>

#include "common/base/log.h"
#include "tests/router/core/support/scenario.h"

namespace brigade::router::testing {
namespace {

std::uint64_t from_env(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Appends the router's decisions to the file that BRIGADE_SIM_TRACE names.
Trace::Sink trace_sink() {
  const char* path = std::getenv("BRIGADE_SIM_TRACE");
  if (path == nullptr) return nullptr;
  auto file = std::make_shared<std::ofstream>(path);
  return [file](const std::string& line) { *file << line << std::endl; };
}

/// What must have happened in some run, or the runs prove nothing about it.
constexpr const char* kSometimes[] = {
    "a worker dies",
    "a worker hangs",
    "a worker stops for a while",
    "a rank gives up",
    "a result is nonsense",
    "loading fails",
    "result of an epoch that is over",
    "drain of a sound replica with requests",
    "ended by the end token",
    "ended by a stop",
    "ended by its length",
    "cancelled before its first token",
    "cancelled between its tokens",
    "expired before its first token",
    "expired between its tokens",
    "unavailable",
    "resource exhausted",
    "prompt scored",
    "prompt in chunks",
    "decodes and prefills in one step",
    "token taken from a sample",
    "prefix found in the cache",
    "cached tokens in the usage",
    "last block of a prompt copied for a fork",
    "preempted",
    "failed over",
};

}  // namespace

// BRIGADE_SIM_SEED=N runs one seed, with BRIGADE_SIM_TRACE=FILE its decisions as lines of JSON;
// BRIGADE_SIM_SEEDS=N as many seeds from there on. ctest runs shares of
// the seeds side by side: BRIGADE_SIM_SHARE=I of 4.
TEST_CASE("no request is lost, repeated or changed under random traffic and faults") {
  setenv("BRIGADE_LOG", "off", 0);  // the faults are loud
  init_log("sim", LogLevel::kError);
  const bool one = std::getenv("BRIGADE_SIM_SEED") != nullptr;
  const std::uint64_t count = from_env("BRIGADE_SIM_SEEDS", one ? 1 : 375);
  const std::uint64_t first =
      from_env("BRIGADE_SIM_SEED", 1 + count * from_env("BRIGADE_SIM_SHARE", 0));
  std::map<std::string_view, std::uint64_t> seen;
  std::uint64_t num_events = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    // Printed before the run: what must hold ends the process when it does not.
    std::cerr << "\rBRIGADE_SIM_SEED=" << seed << ' ' << std::flush;
    Scenario scenario(seed, std::chrono::seconds(1000), trace_sink());
    scenario.run();
    num_events += scenario.world().num_events();
    seen["preempted"] += scenario.world().router().status().preempted;
    seen["failed over"] += scenario.world().router().status().failed_over;
    for (const auto& [what, times] : scenario.world().seen())
      seen[what] += times;
    if (seed % 50 != 0) continue;
    // Outcomes depend on the seed, and not on what the clock says.
    Scenario again(seed, std::chrono::hours(2));
    again.run();
    CHECK_EQ(scenario.world().trace_hash(), again.world().trace_hash());
    CHECK_EQ(scenario.world().num_events(), again.world().num_events());
  }
  std::cerr << '\n';
  MESSAGE(num_events, " events");
  if (count < 100) return;
  for (const char* what : kSometimes) {
    CAPTURE(what);
    CHECK_GT(seen[what], 0);
  }
}

}  // namespace brigade::router::testing
