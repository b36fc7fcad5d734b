// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/scheduler/table.h"

#include <cstdio>

namespace brigade::bench {
namespace {

int missed = 0;

}  // namespace

void print_heading(std::string_view title) {
  std::printf("\n%-58.*s %12s %-10s %12s %7s\n", static_cast<int>(title.size()), title.data(),
              "value", "", "target", "ratio");
}

void print_row(std::string_view what, double value, std::string_view unit, Goal goal,
               double target) {
  std::printf("  %-56.*s %12.4g %-10.*s", static_cast<int>(what.size()), what.data(), value,
              static_cast<int>(unit.size()), unit.data());
  if (goal != Goal::kNone) {
    const bool met = goal == Goal::kAtLeast ? value >= target : value <= target;
    missed += met ? 0 : 1;
    std::printf(" %s %9.4g", goal == Goal::kAtLeast ? ">=" : "<=", target);
    if (target != 0) std::printf(" %7.3f", value / target);
    if (!met) std::printf("  MISSED");
  }
  std::printf("\n");
  std::fflush(stdout);
}

int num_missed() {
  return missed;
}

}  // namespace brigade::bench
