// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/context.h"

#include <chrono>
#include <mutex>
#include <random>

namespace brigade::router {

std::string make_id(std::string_view prefix) {
  static constexpr char kHex[] = "0123456789abcdef";
  static std::mutex mutex;
  static std::mt19937_64 random{std::random_device{}()};
  std::string id(prefix);
  const std::lock_guard lock(mutex);
  for (int word = 0; word < 2; ++word) {
    std::uint64_t bits = random();
    for (int digit = 0; digit < 12; ++digit, bits >>= 4)
      id += kHex[bits & 15];
  }
  return id;
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace brigade::router
