// SPDX-License-Identifier: Apache-2.0
#include "common/base/memory.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string_view>

namespace brigade {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::uint64_t system_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  std::string unit;
  while (file >> name >> kib >> unit) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::uint64_t{2} << 30;  // no /proc: a guess that is safe to work with
}

/// A number in a file of its own; `max` and no file at all are no limit.
std::uint64_t read_limit(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : kUnlimited;
}

/// What version 2 control groups leave this process, from its own group upwards.
std::uint64_t group_memory() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  std::uint64_t left = kUnlimited;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3); !group.empty();) {
      const std::string folder = "/sys/fs/cgroup" + group;
      const std::uint64_t limit = read_limit(folder + "/memory.max");
      const std::uint64_t used = read_limit(folder + "/memory.current");
      if (limit != kUnlimited && used != kUnlimited) {
        left = std::min(left, limit - std::min(limit, used));
      }
      group.resize(group.find_last_of('/'));
    }
  }
  return left;
}

}  // namespace

std::uint64_t available_memory() {
  return std::min(system_memory(), group_memory());
}

std::string memory_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {" B", " kB", " MB", " GB", " TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::ostringstream out;
  out << std::fixed << std::setprecision(unit == 0 || value >= 100 ? 0 : 1) << value
      << kUnits[unit];
  return out.str();
}

}  // namespace brigade
