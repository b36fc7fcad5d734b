// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace brigade {

/// Owns a descriptor and closes it.
class FileDescriptor final {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { reset(-1); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }

  void reset(int fd);
  [[nodiscard]] int release();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// The whole file. kNotFound when it cannot be read; kInvalidArgument when it has more than
/// `max_bytes`.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t max_bytes);

/// Writes the file whole or not at all, through to the disk, over one that is there. `mode` as for
/// open().
[[nodiscard]] Status replace_file(const std::string& path, std::string_view text, mode_t mode);

/// Lets this process have as many descriptors open as it may ask for.
void raise_file_limit();

}  // namespace brigade
