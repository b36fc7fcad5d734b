// SPDX-License-Identifier: Apache-2.0
#include "common/base/file_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade {

FileWatch::FileWatch(const std::vector<std::string>& paths) : paths_(paths) {
  if (paths_.empty()) return;
  fd_.reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  for (const std::string& path : paths_) {
    std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (folder.empty()) folder = ".";
    constexpr std::uint32_t kEvents =
        IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB | IN_DELETE;
    if (!fd_.valid() || inotify_add_watch(fd_.get(), folder.c_str(), kEvents) < 0) {
      log_warning(str_cat("cannot watch ", folder.string(), " (", std::strerror(errno),
                          "): send SIGHUP after a change"));
    }
  }
  last_ = stamps();
}

bool FileWatch::changed() {
  alignas(inotify_event) char events[4096];
  while (fd_.valid() && read(fd_.get(), events, sizeof events) > 0) {
  }
  std::vector<Stamp> now = stamps();
  const bool other = now != last_;
  last_ = std::move(now);
  return other;
}

std::vector<FileWatch::Stamp> FileWatch::stamps() const {
  std::vector<Stamp> all;
  for (const std::string& path : paths_) {
    struct stat info {};
    Stamp& stamp = all.emplace_back();
    if (stat(path.c_str(), &info) != 0) continue;
    constexpr std::int64_t kNsPerSecond = 1'000'000'000;
    stamp = {.inode = info.st_ino,
             .size = info.st_size,
             .modified_ns = info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec};
  }
  return all;
}

}  // namespace brigade
