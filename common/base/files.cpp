// SPDX-License-Identifier: Apache-2.0
#include "common/base/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "common/base/strings.h"

namespace brigade {
namespace {

constexpr std::size_t kShownPath = 200;

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return internal_error(str_cat("write: ", std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (fsync(fd) != 0) return internal_error(str_cat("fsync: ", std::strerror(errno)));
  return {};
}

}  // namespace

void FileDescriptor::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

int FileDescriptor::release() {
  return std::exchange(fd_, -1);
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return not_found(str_cat("cannot read ", quoted(path, kShownPath), ": ", std::strerror(errno)));
  }
  std::string text;
  char part[16384];
  while (true) {
    const ssize_t n = read(file.get(), part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return not_found(
          str_cat("cannot read ", quoted(path, kShownPath), ": ", std::strerror(errno)));
    }
    if (n == 0) return text;
    text.append(part, static_cast<std::size_t>(n));
    if (text.size() > max_bytes) {
      return invalid_argument(
          str_cat(quoted(path, kShownPath), " has more than ", max_bytes, " bytes"));
    }
  }
}

Status replace_file(const std::string& path, std::string_view text, mode_t mode) {
  const std::string draft = str_cat(path, ".", getpid(), ".new");
  FileDescriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.valid()) {
    return internal_error(
        str_cat("cannot write ", quoted(draft, kShownPath), ": ", std::strerror(errno)));
  }
  Status status = write_all(file.get(), text);
  file.reset(-1);
  if (status.ok() && rename(draft.c_str(), path.c_str()) != 0) {
    status = internal_error(
        str_cat("cannot name ", quoted(path, kShownPath), ": ", std::strerror(errno)));
  }
  if (!status.ok()) unlink(draft.c_str());
  return status;
}

void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace brigade
