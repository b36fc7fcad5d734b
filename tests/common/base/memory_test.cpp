// SPDX-License-Identifier: Apache-2.0
#include "common/base/memory.h"

#include <doctest/doctest.h>
#include <unistd.h>

namespace brigade {

TEST_CASE("what is available is some of the machine's memory") {
  const auto all = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  CHECK(available_memory() > 0);
  CHECK(available_memory() <= all);
}

TEST_CASE("sizes are written for people") {
  CHECK(memory_text(0) == "0 B");
  CHECK(memory_text(999) == "999 B");
  CHECK(memory_text(98'362'432) == "98.4 MB");
  CHECK(memory_text(251'000'000) == "251 MB");
  CHECK(memory_text(std::uint64_t{1} << 62U) == "4611686 TB");
}

}  // namespace brigade
