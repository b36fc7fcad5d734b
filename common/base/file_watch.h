// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"

namespace brigade {

/// Tells when one of some files has changed: written, replaced, or what a link to it points at. It
/// watches their folders (inotify), so that a file may go and come back.
class FileWatch final {
 public:
  explicit FileWatch(const std::vector<std::string>& paths);

  /// Readable when something has happened near the files; -1 without files.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Takes what has happened. True when a file is another one, or has another time or size, than at
  /// the last call.
  [[nodiscard]] bool changed();

 private:
  struct Stamp {
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t modified_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  [[nodiscard]] std::vector<Stamp> stamps() const;

  FileDescriptor fd_;
  std::vector<std::string> paths_;
  std::vector<Stamp> last_;
};

}  // namespace brigade
