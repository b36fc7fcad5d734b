// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/process/host.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace brigade::worker {
namespace {

/// Device and inode, as the kernel tells one namespace or mount from another.
std::string identity(const char* path) {
  struct stat info {};
  if (stat(path, &info) != 0) return "none";
  return str_cat(info.st_dev, '.', info.st_ino);
}

}  // namespace

std::string host_id() {
  std::string boot_id = "unknown";
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  return str_cat(boot_id, '/', identity("/proc/self/ns/mnt"), '/', identity("/dev/shm"), '/',
                 getuid());
}

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  while (value == 0) {
    const ssize_t got = getrandom(&value, sizeof value, /*flags=*/0);
    INVARIANT(got == sizeof value || (got < 0 && errno == EINTR)) << std::strerror(errno);
  }
  return value;
}

}  // namespace brigade::worker
