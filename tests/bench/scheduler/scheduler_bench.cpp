// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/base/log.h"
#include "tests/bench/scheduler/benches.h"
#include "tests/bench/scheduler/table.h"

namespace brigade::bench {
namespace {

struct Bench {
  const char* name;
  void (*run)();
};
constexpr Bench kBenches[] = {
    {"planning", bench_planning},
    {"pipelines", bench_pipelines},
    {"short-beside-long", bench_short_beside_long},
    {"overload", bench_overload},
    {"tenants", bench_tenants},
    {"shared-prefixes", bench_shared_prefixes},
};

int run_main(int argc, char** argv) {
  if (argc > 1 && std::strncmp(argv[1], "--help", 6) == 0) {
    std::printf(
        "Measures the router's scheduler against its targets: scheduler_bench [NAME ...]\n"
        "`planning` takes CPU time: run it in a release build on a quiet machine. The others run "
        "in\n"
        "virtual time and print the same anywhere. Names:");
    for (const Bench& bench : kBenches)
      std::printf(" %s", bench.name);
    std::printf("\nThe exit status is 1 when a target was missed.\n");
    return 0;
  }
  setenv("BRIGADE_LOG", "off", /*overwrite=*/0);
  init_log("bench");
  for (const Bench& bench : kBenches) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i)
      wanted |= std::strcmp(argv[i], bench.name) == 0;
    if (wanted) bench.run();
  }
  return num_missed() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace brigade::bench

int main(int argc, char** argv) {
  return brigade::bench::run_main(argc, argv);
}
